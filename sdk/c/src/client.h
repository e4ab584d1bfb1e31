/* A client within the library: one request and its answer. */
#ifndef ORBIT_SDK_CLIENT_H
#define ORBIT_SDK_CLIENT_H

#include "codec/json.h"
#include "sdk.h"
#include "view.h"

/* What a request holds while its answer is read: taken from the client, which keeps its connections for the next request. */
struct sdk_exchange {
  struct orbit_client *client;
  struct sdk_connection *connection; /* NULL: nothing to give back */
  struct json *json;                 /* the parsed answer; it has tokens when is_json */
  struct bytes body;
  bool is_json;
  uint32_t data; /* token of the envelope's data, 0 where there is none */
  int32_t http_status;
  char request_id[64];
};

/* Makes the request; path and key as with orbit_call; body data NULL: none. Whatever it returns, sdk_exchange_end follows (it
 * suits the cleanup attribute). On ORBIT_OK the answer has a 2xx status. */
int sdk_exchange(struct orbit_client *client, const char *method, const char *path, const char *key, struct bytes body,
                 struct sdk_exchange *exchange, struct orbit_error *error);
void sdk_exchange_end(struct sdk_exchange *exchange);
/* Wipes the answer, which held a secret; nothing of it may be read any more. */
void sdk_exchange_wipe(struct sdk_exchange *exchange);
/* A view on the member `name` of data (NULL: on data itself), texts copied to arena; absent when the answer has no such object.
 */
struct sdk_view sdk_exchange_view(struct sdk_exchange *exchange, const char *name, struct sdk_arena *arena);
/* After reading: ORBIT_NO_MEMORY, ORBIT_BAD_ANSWER, or ORBIT_OK. */
int sdk_exchange_judge(const struct sdk_exchange *exchange, const struct sdk_view *view, struct orbit_error *error);

#endif
