-- One database for each service of the shop, on one server only because this is an example.
create database orders;
create database inventory;
create database payment;
