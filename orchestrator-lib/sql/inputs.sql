-- The inputs of rows just claimed, and operators' retry policies. $1 ids
select transaction, input, retry from ringsaga.payload where transaction = any($1::uuid[])
