-- What the store says this incarnation runs. $1 incarnation
select id, epoch, nonce, wake_seq from ringsaga.transaction where owner = $1 and state = 'running'
