/* The server's configuration: flags, ORBIT_* environment and an INI file, the same names in all three; flags win over the
 * environment, the environment over the file (README "Configuration"). */
#ifndef ORBIT_ORBITD_CONFIG_H
#define ORBIT_ORBITD_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/status.h"

struct config {
  char data[config_text_bytes_max];          /* data directory */
  char listen[config_text_bytes_max];        /* ADDR:PORT of the HTTP interface */
  char worker_listen[config_text_bytes_max]; /* ADDR:PORT of the worker channel */
  char worker_url[config_text_bytes_max];    /* what /v1/info tells workers; "": made from worker_listen */
  char log_format[config_text_bytes_max];    /* auto, json, text */
  char tls_cert[config_text_bytes_max];      /* PEM files; "": plain text */
  char tls_key[config_text_bytes_max];
  uint64_t http_threads;            /* 0: cores - 1, at least 1 */
  uint64_t map_size;                /* bytes of address space for the log */
  uint64_t hot_window;              /* seconds that ended tasks stay in memory */
  uint64_t retention;               /* seconds that ended tasks are answered; 0: for ever */
  uint64_t memory_max;              /* bytes that tasks and receipts may take before they leave sooner; 0: no bound */
  bool accept_future_log;           /* start although the log's last event lies ahead of the wall clock */
  bool allow_plain_text;            /* listen without TLS beyond loopback */
  uint64_t connections_per_address; /* at each of the two ports */
  uint64_t workers_per_credential;  /* connected at once */
  uint64_t requests_per_credential; /* HTTP, under way at once */
  bool core_dumps;                  /* a crash may write memory to disk, tokens with it */
  bool metrics_open;                /* /metrics needs no token */
  bool checkpoint;                  /* keep DATA/views and start from it */
  bool check;                       /* judge the configuration and stop */
  bool print_config;                /* print it and stop */
};

/* Reads all three sources. Prints --help and --version itself and exits 0. INVALID_ARGUMENT: fault names the option and where
 * it was given. */
enum status config_read(int argc, char **argv, struct config *ret_config, struct fault *fault);
/* As an INI file on stdout. */
void config_print(const struct config *config);

#endif
