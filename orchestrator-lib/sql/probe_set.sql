-- First round trip of the probe for session state. $1 mark
select set_config('ringsaga.probe', $1, false)
