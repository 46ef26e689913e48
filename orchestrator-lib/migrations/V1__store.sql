-- The store's identity, the definitions of sagas and the processes that run them.
-- Every name is qualified: no search_path is assumed. The schema itself is made before this runs,
-- because the table of migrations stands in it.

-- Which store this is: a client that was pointed at another database notices.
create table ringsaga.store (
    one boolean primary key default true check (one),
    store_id uuid not null default gen_random_uuid(),
    created_at timestamptz not null default now()
);
insert into ringsaga.store default values;

-- A definition has name, version and digest. Transactions name it by a number of four bytes, so
-- that the hot row stays narrow; rows here are never changed or removed.
create table ringsaga.definition (
    id integer generated always as identity primary key,
    saga text not null,
    version bigint not null,
    digest text not null,
    unique (saga, version, digest)
);

-- One lease a process. Death is written once (dead_at) and only a dead incarnation's rows may be
-- taken, so a renewal can't race a theft.
create table ringsaga.owner (
    incarnation bigint generated always as identity primary key,
    boot uuid not null,
    instance text not null,
    region text not null,
    cluster text not null,
    service text not null,
    retry_node boolean not null,
    -- Ids of definitions that this process can run.
    capabilities integer[] not null,
    opened_at timestamptz not null default now(),
    lease_until timestamptz not null,
    dead_at timestamptz,
    -- The transaction under suspicion of killing processes that runs here, if one does.
    suspect uuid
);
-- Renewed every two seconds: room for HOT updates on the page.
alter table ringsaga.owner set (fillfactor = 50);
create index owner_living on ringsaga.owner (region, cluster, service) where dead_at is null;
create index owner_dead on ringsaga.owner (region, cluster, service) where dead_at is not null;
