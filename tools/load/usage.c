/* Owns what is read about a server from outside: its processor time and memory, and its log after it stopped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/guard.h"
#include "journal/journal.h"
#include "load/server.h"

/* "Name:   123 kB" in /proc/PID/status. */
static uint64_t status_kib(const char *text, const char *name) {
  const char *at = strstr(text, name);
  return at != NULL ? strtoull(at + strlen(name), NULL, 10) : 0; /* white space is passed over */
}

struct usage usage_read(pid_t pid) {
  struct usage usage = {0};
  clockid_t clock;
  struct timespec spent;
  char path[64], text[8192];
  if (pid <= 0) return usage;
  /* The same sum as utime and stime of /proc/PID/stat, not rounded to clock ticks. */
  if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &spent) == 0)
    usage.cpu_us = (double)spent.tv_sec * 1e6 + (double)spent.tv_nsec / 1e3;
  (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return usage;
  size_t size = fread(text, 1, sizeof text - 1, file);
  text[size] = '\0';
  (void)fclose(file);
  usage.rss_bytes = status_kib(text, "\nVmRSS:") * 1024;
  usage.anon_bytes = status_kib(text, "\nRssAnon:") * 1024;
  return usage;
}

struct counting {
  struct log_facts *facts;
  uint64_t after_seq;
};

static enum status count(void *context, const struct event *event, struct bytes record, struct fault *fault) {
  struct counting *counting = context;
  (void)record, (void)fault;
  if (event->seq <= counting->after_seq) return STATUS_OK;
  counting->facts->events++;
  if (event->last_of_commit) counting->facts->commits++;
  return STATUS_OK;
}

enum status log_used_read(const char *data, uint64_t *ret_bytes, struct fault *fault) {
  struct journal_options options = {.read_only = true};
  struct journal *journal;
  struct journal_stats stats;
  enum status status = journal_open(data, &options, &journal, fault);
  if (status != STATUS_OK) return status;
  journal_stats(journal, &stats);
  journal_close(journal, false);
  *ret_bytes = stats.used_bytes;
  return STATUS_OK;
}

enum status log_facts_read(const char *data, uint64_t after_seq, struct log_facts *ret_facts, struct fault *fault) {
  struct journal_options options = {.read_only = true};
  struct journal *journal;
  struct log_facts facts = {0};
  struct journal_stats stats;
  struct counting counting = {&facts, after_seq};
  enum status status = journal_open(data, &options, &journal, fault);
  if (status != STATUS_OK) return status;
  status = journal_replay(journal, 0, 0, count, &counting, fault);
  journal_stats(journal, &stats);
  facts.used_bytes = stats.used_bytes;
  facts.last_seq = journal_last_seq(journal);
  journal_close(journal, false);
  if (status == STATUS_OK) *ret_facts = facts;
  return status;
}
