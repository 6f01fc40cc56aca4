-- Workers: what each has done.
SELECT * FROM worker_load;
