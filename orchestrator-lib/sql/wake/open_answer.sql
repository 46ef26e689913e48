select exists (select from target) as open, (select wake_seq from raised) as wake_seq
