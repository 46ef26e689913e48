-- What a person must hear of: an outbox, written in the commit that makes it true, and emptied by
-- a notifier. No foreign key to ringsaga.transaction: an alert outlives a purge.
create table ringsaga.alert (
    -- Told to receivers, who recognise a repeat by it.
    id uuid primary key default gen_random_uuid(),
    at timestamptz not null default clock_timestamp(),
    kind text not null,
    region text not null,
    cluster text not null,
    service text not null,
    transaction uuid,
    saga text,
    version bigint,
    step text,
    text text not null,
    -- What makes it one alert: several writers of the same fact leave one row.
    key text not null unique,
    -- When it was counted and, where nobody had said it yet, said on the bus.
    told_at timestamptz,
    -- When a notifier made its deliveries.
    spread_at timestamptz
);
create index alert_untold on ringsaga.alert (region, cluster, service) where told_at is null;
create index alert_unspread on ringsaga.alert (region, cluster, at) where spread_at is null;
-- "key > ''" is always true and names the index: on an empty table the planner would otherwise
-- take this one for what is new.
create index alert_by_age on ringsaga.alert (region, cluster, at) where key > '';

-- One alert on its way to one hook. Each hook has its own state, so that one that is away holds
-- back no other.
create table ringsaga.alert_delivery (
    alert uuid not null references ringsaga.alert (id) on delete cascade,
    hook text not null,
    region text not null,
    cluster text not null,
    -- Next attempt; during one, the end of its lease.
    due_at timestamptz not null,
    attempts integer not null default 0,
    -- Whose attempt it is: a late answer of an older one reschedules nothing.
    lease uuid,
    delivered_at timestamptz,
    -- Attempts ended without success; it stays, with its error, until a person looks.
    given_up_at timestamptz,
    error text,
    primary key (alert, hook)
);
create index alert_delivery_due on ringsaga.alert_delivery (region, cluster, hook, due_at)
    where delivered_at is null and given_up_at is null;

-- When a hook may be called next, for all notifiers together.
create table ringsaga.alert_pace (
    region text not null,
    cluster text not null,
    hook text not null,
    free_at timestamptz not null,
    primary key (region, cluster, hook)
);

-- When a state that lasts was raised last: looked at every few seconds by several nodes, said once
-- a day.
create table ringsaga.alert_raised (
    key text primary key,
    at timestamptz not null
);
create index alert_raised_by_age on ringsaga.alert_raised (at);

-- Compensations under way, oldest transaction first. No column that a step's write changes:
-- running rows are rewritten on their page (HOT), and this index must not end that.
create index transaction_compensating on ringsaga.transaction
    (region, cluster, service, created_at)
    where direction = 'compensating' and settled_at is null;

-- Runs at the end of the statement that changed the state: the record and the error that it wrote
-- are read here. Whatever is missing becomes null, so that an alert never stops a commit.
create function ringsaga.raise_alert() returns trigger language plpgsql as $$
declare
    -- Forward, only a step that can't be undone or repeated ends a transaction so.
    told text := case
        when old.state in ('terminated', 'disabled', 'quarantined')
            and new.state in ('running', 'paused') then 'restored'
        when new.state = 'terminated' and new.direction = 'forward' then 'irreversible-failed'
        else new.state end;
begin
    insert into ringsaga.alert
        (kind, region, cluster, service, transaction, saga, version, step, text, key)
    select told, new.region, new.cluster, new.service, new.id, d.saga, d.version, s.name,
        left(case told
            when 'restored' then 'was ' || old.state || ' and is retried again'
            when 'irreversible-failed' then coalesce(p.error, 'a step that can''t be undone failed')
            when 'terminated' then coalesce(p.error, 'its compensation failed for good')
            when 'disabled' then coalesce(p.error, 'its lifetime is over')
            else coalesce(p.error, 'its owners died too often')
        end, 500),
        told || '/' || new.id || '/' || new.epoch
    from (select) nothing
    left join ringsaga.definition d on d.id = new.definition
    left join ringsaga.payload p on p.transaction = new.id
    left join ringsaga.step s
        on s.transaction = new.id and s.direction = new.direction and s.seq = new.seq
    on conflict (key) do nothing;
    return null;
end $$;

-- The condition is asked for each changed row and false for nearly all: nothing is queued then.
create trigger alert after update of state on ringsaga.transaction for each row
    when (new.state is distinct from old.state
        and (new.state in ('terminated', 'disabled', 'quarantined')
            or old.state in ('terminated', 'disabled', 'quarantined')
                and new.state in ('running', 'paused')))
    execute function ringsaga.raise_alert();
