/* Owns how a server is found: the credentials file, and what the server says of itself. */
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "load/http_line.h"
#include "load/scan.h"
#include "load/server.h"
#include "orbit.h"

enum { answer_bytes_max = 1024 * 1024 };

/* The worker channel's address from GET /v1/info. */
static enum status ask_worker_url(struct server_access *access, struct fault *fault) {
  cleanup(buffer_clear) struct buffer request, answer;
  unsigned code = 0;
  buffer_init(&request, answer_bytes_max);
  buffer_init(&answer, answer_bytes_max);
  http_request_write(&request, "GET", "/v1/info", &access->http, NULL, NULL, bytes_of(NULL, 0));
  enum status status = http_fetch(&access->http, buffer_bytes(&request), &code, &answer, fault);
  if (status != STATUS_OK) return status;
  struct bytes url = scan_text(scan_member(buffer_bytes(&answer), "data"), "worker_url");
  if (code != 200 || url.size == 0)
    return fault_set(fault, STATUS_UNAVAILABLE, NULL, "%s does not say where workers connect", access->http.text);
  return address_parse(url, &access->worker, fault);
}

enum status server_access_read(const char *credentials, const char *url, struct server_access *ret_access,
                               struct fault *fault) {
  struct orbit_credentials *file = NULL;
  struct orbit_error error;
  struct server_access access = {.http.size = 0};
  if (orbit_credentials_load(credentials, &file, &error) != ORBIT_OK)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "credentials", "%.300s", error.message);
  enum status status = address_parse(bytes_text(url != NULL ? url : file->url), &access.http, fault);
  if (status == STATUS_OK && (strlen(file->token) >= sizeof access.token || strlen(file->queue_id) >= sizeof access.queue_id))
    status = fault_set(fault, STATUS_INVALID_ARGUMENT, "credentials", "token or queue_id is longer than Orbit makes them");
  if (status == STATUS_OK) {
    (void)snprintf(access.token, sizeof access.token, "%s", file->token);
    (void)snprintf(access.queue_id, sizeof access.queue_id, "%s", file->queue_id);
    status = ask_worker_url(&access, fault);
  }
  orbit_credentials_free(file);
  if (status == STATUS_OK) *ret_access = access;
  explicit_bzero(access.token, sizeof access.token);
  return status;
}
