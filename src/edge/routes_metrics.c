/* Owns the metrics route: what the engine counts and what the system says of the process. */
#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "edge/metrics_text.h"
#include "edge/routes.h"

static uint64_t resident_bytes(void) {
  unsigned long size = 0, resident = 0;
  long page = sysconf(_SC_PAGESIZE);
  FILE *file = fopen("/proc/self/statm", "re");
  if (file == NULL) return 0;
  /* The kernel writes numbers that fit. NOLINTNEXTLINE(cert-err34-c) */
  int found = fscanf(file, "%lu %lu", &size, &resident);
  (void)fclose(file);
  return found == 2 && page > 0 ? (uint64_t)resident * (uint64_t)page : 0;
}

static uint64_t open_fds(void) {
  uint64_t count = 0;
  DIR *directory = opendir("/proc/self/fd");
  if (directory == NULL) return 0;
  for (const struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory))
    if (entry->d_name[0] != '.') count++;
  (void)closedir(directory);
  return count > 0 ? count - 1 : 0; /* not the one that reads them */
}

static double timeval_seconds(const struct timeval *time) { return (double)time->tv_sec + (double)time->tv_usec / 1e6; }

static struct process_numbers process_now(void) {
  struct process_numbers process = {.resident_bytes = resident_bytes(), .open_fds = open_fds()};
  struct rlimit limit;
  struct rusage usage;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) process.max_fds = (uint64_t)limit.rlim_cur;
  if (getrusage(RUSAGE_SELF, &usage) == 0)
    process.cpu_seconds = timeval_seconds(&usage.ru_utime) + timeval_seconds(&usage.ru_stime);
  return process;
}

enum status metrics_begin(struct request *request, struct command *command, struct fault *fault) {
  (void)request, (void)fault;
  command->kind = COMMAND_GET_METRICS;
  return STATUS_OK;
}

enum status metrics_finish(struct request *request, const struct answer *answer, struct fault *fault) {
  struct edge *edge = request->pool->edge;
  struct process_numbers process = process_now();
  uint32_t permille = atomic_load_explicit(&edge->replay_permille, memory_order_relaxed);
  bool done = answer != NULL || permille > 1000;
  (void)fault;
  struct crowded_numbers crowded = {.requests = atomic_load_explicit(&edge->crowded_requests, memory_order_relaxed),
                                    .workers = atomic_load_explicit(&edge->crowded_workers, memory_order_relaxed)};
  metrics_text_write(&request->out, answer != NULL ? answer->as.metrics : NULL, &process, &crowded,
                     done ? 1 : (double)permille / 1000, edge->version);
  return STATUS_OK;
}
