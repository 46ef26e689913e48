-- The participant's barrier: a call takes effect once, whatever the network does with it.
--
-- One row a transaction, step and direction. Whoever inserts the row has the right to the effect;
-- a second call finds it and gets the stored answer. A compensation that comes first leaves the
-- action's row behind, so that a late action finds it taken. Usable from every language:
--
--     begin;
--     select verdict, answer from barrier_enter($transaction, 'charge', 'forward');
--     -- verdict 'first': the effect, in this database transaction, then
--     select barrier_answer($transaction, 'charge', 'forward', '{"receipt": 1}');
--     commit;   -- a refusal rolls back instead: it is not stored
--
--     verdict      | what to answer
--     'first'      | carry it out; of a compensation `answer` holds the action's own (null: unknown)
--     'again'      | done, with `answer`
--     'nothing'    | done: a compensation whose action never came
--     'compensated'| the action was undone before it came: never "done"
--     'in_progress'| another call is at it: ask again in `wait_ms`, and roll back
--
-- Work that is *not* in this database (a card that is charged elsewhere) passes `hold`, longer than
-- the work can take, and commits at once: the row then says "started", so that a compensation runs
-- for real although no answer was ever stored, and waits while the work goes on. It ends with
-- barrier_answer, or with barrier_leave when there is nothing to store.
--
-- Rows must outlive every retry of the saga: its lifetime and the time in which people restore
-- transactions (barrier_purge).
create table if not exists barrier (
    transaction uuid not null,
    step text not null,
    direction text not null check (direction in ('forward', 'compensating')),
    -- JSON text; null in a row that only blocks, and in one that is started.
    answer text,
    -- Calls that found the row and changed nothing.
    repeats bigint not null default 0,
    created_at timestamptz not null default now(),
    primary key (transaction, step, direction)
);

-- Until when a started call has the row for itself; null when the work is in this database.
alter table barrier add column if not exists held_until timestamptz;
-- How often work outside this database was begun.
alter table barrier add column if not exists attempts integer not null default 1;

create index if not exists barrier_age on barrier (created_at);

create or replace function barrier_enter(
    of_transaction uuid, of_step text, way text, hold interval default null,
    out verdict text, out answer text, out wait_ms bigint
) language plpgsql as $$
#variable_conflict use_column
declare
    found_row barrier%rowtype;
    actions barrier%rowtype;
    undone boolean;
    until_when constant timestamptz := clock_timestamp() + hold;
begin
    -- Waits for a concurrent call of the same key, which has the row until it ends.
    insert into barrier (transaction, step, direction, held_until)
        values (of_transaction, of_step, way, until_when) on conflict do nothing;
    if not found then
        update barrier b set repeats = b.repeats + 1
            where b.transaction = of_transaction and b.step = of_step and b.direction = way
            returning * into found_row;
        if not found then
            -- Its owner gave it up, or a purge took it, in between.
            verdict := 'in_progress'; wait_ms := 100;
            return;
        end if;
        select way = 'forward' and exists (
            select from barrier b where b.transaction = of_transaction and b.step = of_step
                and b.direction = 'compensating') into undone;
        if undone then
            verdict := 'compensated';
            return;
        elsif found_row.answer is not null or found_row.held_until is null then
            verdict := 'again'; answer := found_row.answer;
            return;
        elsif found_row.held_until > clock_timestamp() then
            verdict := 'in_progress';
            wait_ms := ceil(extract(epoch from found_row.held_until - clock_timestamp()) * 1000);
            return;
        end if;
        -- Begun, and whoever began it has given up or died: the work is done again, under its key.
        update barrier b set held_until = until_when, attempts = b.attempts + 1
            where b.transaction = of_transaction and b.step = of_step and b.direction = way;
    end if;
    verdict := 'first';
    if way = 'forward' then
        return;
    end if;
    -- Taking the action's row as well blocks it for ever, or shows that it was here.
    insert into barrier (transaction, step, direction)
        values (of_transaction, of_step, 'forward') on conflict do nothing;
    if found then
        verdict := 'nothing';
        update barrier b set held_until = null
            where b.transaction = of_transaction and b.step = of_step and b.direction = way;
        return;
    end if;
    -- Locked, so that no late call takes a started action up again meanwhile.
    select * into actions from barrier b
        where b.transaction = of_transaction and b.step = of_step and b.direction = 'forward'
        for update;
    answer := actions.answer;
    if answer is null and actions.held_until > clock_timestamp() then
        -- The action is being carried out at this moment: undoing it now would undo nothing.
        delete from barrier b
            where b.transaction = of_transaction and b.step = of_step and b.direction = way;
        verdict := 'in_progress';
        wait_ms := ceil(extract(epoch from actions.held_until - clock_timestamp()) * 1000);
    end if;
end $$;

-- Stores the answer of whoever was 'first' and gives the one that counts: an earlier one if there
-- is one, null when the action was undone meanwhile.
create or replace function barrier_answer(
    of_transaction uuid, of_step text, way text, given text
) returns text language plpgsql as $$
declare
    stored text;
begin
    update barrier b set answer = coalesce(b.answer, given), held_until = null
        where b.transaction = of_transaction and b.step = of_step and b.direction = way
        returning b.answer into stored;
    -- Its own statement: what it waited for above is seen here.
    if way = 'forward' and exists (
        select from barrier b where b.transaction = of_transaction and b.step = of_step
            and b.direction = 'compensating')
    then
        return null;
    end if;
    return stored;
end $$;

-- Gives up started work without an answer. `applied` says whether it may have had an effect: a
-- first attempt that certainly had none leaves no trace, any other may be taken up again at once.
create or replace function barrier_leave(
    of_transaction uuid, of_step text, way text, applied boolean
) returns void language plpgsql as $$
begin
    delete from barrier b
        where b.transaction = of_transaction and b.step = of_step and b.direction = way
            and way = 'forward' and not applied and b.attempts = 1
            and b.answer is null and b.held_until is not null
            and not exists (
                select from barrier c where c.transaction = of_transaction and c.step = of_step
                    and c.direction = 'compensating');
    update barrier b set held_until = clock_timestamp()
        where b.transaction = of_transaction and b.step = of_step and b.direction = way
            and b.answer is null and b.held_until is not null;
end $$;

-- Removes rows of a transaction's step together, when none of them is younger than `retention`, and
-- tells how many went: about `most` at a time. Call it until it gives 0. `retention` is at least
-- the saga's lifetime and the time in which people restore its transactions.
create or replace function barrier_purge(retention interval, most integer)
returns bigint language sql as $$
    with old as (
        select b.transaction, b.step from barrier b
        where b.created_at < clock_timestamp() - retention
            and not exists (
                select from barrier y where y.transaction = b.transaction and y.step = b.step
                    and y.created_at >= clock_timestamp() - retention)
        order by b.created_at limit most
    ), gone as (
        delete from barrier b using (select distinct transaction, step from old) o
        where b.transaction = o.transaction and b.step = o.step
        returning 1
    )
    select count(*) from gone
$$;
