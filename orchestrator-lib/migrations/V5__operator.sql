-- The names of a definition's steps in their order, told by the processes that can run it: people
-- see names instead of numbers, and what an operator skips is compared with them. Null until such a
-- process of this version was here.
alter table ringsaga.definition add column steps text[];

-- What a transaction started moves with it. No parent ever changes, so this costs sub-sagas' starts
-- and nobody else.
create index transaction_of_parent on ringsaga.transaction (parent) where parent is not null;
