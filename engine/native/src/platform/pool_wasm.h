// What a page does for the pool of its module.
#pragma once

namespace lite {

// So many workers will call serve_pool, threads 1 ... workers of every pool. Once, before the first run.
void expect_workers(int workers);
int expected_workers();

// From now on the calling thread may sleep.
void become_worker();
// A worker's part of every run; does not return.
void serve_pool(int thread);

}  // namespace lite
