//! What must hold whatever happens. Each loop makes `testkit::rounds` rounds and prints its seed.

mod cancels;
mod crash;
mod crashes;
mod damage;
mod disk_full;
mod fuzz;
mod gc;
mod hostile_images;
mod isolation;
mod limits;
mod network;
mod paths;
mod power;
mod programs;
mod queries;
mod registries;
mod requests;
mod sessions;
mod streams;
mod workload;
