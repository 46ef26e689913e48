union all
select n, null, null from fresh
