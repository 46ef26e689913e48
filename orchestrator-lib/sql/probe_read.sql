-- Second round trip: behind a pooler in transaction mode it may reach another session.
select coalesce(current_setting('ringsaga.probe', true), '') as mark
