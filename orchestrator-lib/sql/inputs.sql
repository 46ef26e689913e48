-- The inputs of rows just claimed. $1 ids
select transaction, input from ringsaga.payload where transaction = any($1::uuid[])
