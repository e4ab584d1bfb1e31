/* Owns what administrators of the simulation do to queues, applications and credentials, and the judgement of tokens. */
#include <string.h>

#include "engine/internal.h"
#include "sim/model_internal.h"
#include "sim/sim.h"

/* ---- tokens ---- */

static void judge_token(struct sim *sim, const struct model_credential *credential, uint64_t number, bool good) {
  struct token_text token = text_token(number);
  struct principal who = {.permissions = 0};
  struct fault fault;
  enum status status = directory_authenticate(engine_directory(sim->engine), bytes_text(token.text), sim->now_us, &who, &fault);
  if (status != (good ? STATUS_OK : STATUS_UNAUTHENTICATED))
    model_complain(&sim->model, "token %llu of credential %s is %s, and should %sbe good", (unsigned long long)number,
                   id_text(&credential->id).text, status_name(status), good ? "" : "not ");
  else if (good && (!id_equal(&who.credential_id, &credential->id) || who.credential_revision != credential->revision ||
                    !id_equal(&who.application_id, &sim->model.applications[credential->application].id)))
    model_complain(&sim->model, "token %llu lets in as somebody else", (unsigned long long)number);
}

void sim_compare_tokens(struct sim *sim) {
  const struct model *model = &sim->model;
  for (unsigned i = 0; i < model->credential_count; i++) {
    const struct model_credential *credential = &model->credentials[i];
    judge_token(sim, credential, credential->token, model_token_is_good(model, credential));
    if (credential->old_token != 0) judge_token(sim, credential, credential->old_token, false);
  }
  sim->model.tokens_changed = false;
}

/* ---- what is asked ---- */

/* Requests of this kind that have not been judged yet. */
static uint32_t count_asked(const struct sim *sim, enum command_kind kind) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < sim->pending_count; i++) count += sim->pending[i].request.kind == kind;
  for (uint32_t k = 0; k < sim->held_count; k++)
    for (uint32_t i = 0; i < sim->held[k].pending_count; i++) count += sim->held[k].pending[i].request.kind == kind;
  return count;
}

bool sim_has_place(struct sim *sim, const struct request *request) {
  struct model *model = &sim->model;
  uint32_t place = request->kind == COMMAND_QUEUE_CREATE          ? queues_max - model->queue_count
                   : request->kind == COMMAND_SCHEDULE_CREATE     ? schedules_max - model->schedule_count
                   : request->kind == COMMAND_SUBSCRIPTION_CREATE ? subscriptions_here_max - model->subscription_count
                   : request->kind == COMMAND_CREDENTIAL_CREATE   ? credentials_max - model->credential_count
                                                                  : UINT32_MAX;
  if (model_receipt_find(model, request) != NULL) return true;
  uint32_t asked = count_asked(sim, request->kind);
  return place > asked;
}

static void change_application(struct sim *sim, struct request *request) {
  request->kind = COMMAND_APPLICATION_CHANGE;
  request->administered.object = (uint8_t)sim_roll(sim, applications_max);
  const struct model_application *application = &sim->model.applications[request->administered.object];
  request->expected_revision = application->revision + sim_chance(sim, 8);
  request->given = GIVEN_DISABLED;
  request->administered.disabled = !application->disabled && sim_chance(sim, 60);
  if (sim_chance(sim, 50)) return;
  request->given |= GIVEN_MAX_UNFINISHED;
  request->limits[LIMIT_UNFINISHED] = sim_chance(sim, 50) ? 0 : 20 + sim_roll(sim, 30);
}

static void change_credential(struct sim *sim, struct request *request) {
  uint32_t count = sim->model.credential_count;
  uint64_t luck = sim_roll(sim, 10);
  request->administered.token = request->key;
  if (luck < 4) {
    request->kind = COMMAND_CREDENTIAL_CREATE;
    request->administered.object = (uint8_t)sim_roll(sim, applications_max);
    request->administered.narrow = sim_chance(sim, 40);
    if (sim_chance(sim, 30)) request->administered.expires_at = sim->now_us + (int64_t)sim_roll(sim, 20000000) - 1000;
  } else if (luck < 7 || count == principals_max) {
    request->kind = COMMAND_CREDENTIAL_ROTATE;
    request->administered.object = (uint8_t)sim_roll(sim, count);
  } else { /* the principals' own are kept */
    request->kind = COMMAND_CREDENTIAL_REVOKE;
    request->administered.object = (uint8_t)(principals_max + sim_roll(sim, count - principals_max));
    request->administered.token = 0;
  }
}

static void create_queue(struct sim *sim, struct request *request) {
  request->kind = COMMAND_QUEUE_CREATE;
  request->queue = asked_any;
  if (sim_chance(sim, 50)) request->limits[LIMIT_UNFINISHED] = 5 + sim_roll(sim, 20);
  if (sim_chance(sim, 50)) request->limits[LIMIT_RUNNING] = 1 + sim_roll(sim, 5);
  if (sim_chance(sim, 50)) request->limits[LIMIT_KEY] = 1 + sim_roll(sim, 3);
  if (sim_chance(sim, 50)) request->limits[LIMIT_LEASE_MS] = 5000 + sim_roll(sim, 15000);
}

void step_admin(struct sim *sim) {
  struct request request = {.who = (uint8_t)sim_roll(sim, principals_max), .key = sim_new_key(sim)};
  uint64_t luck = sim_roll(sim, 100);
  request.text = (uint8_t)sim_roll(sim, 4);
  if (luck < 20) create_queue(sim, &request);
  else if (luck < 50) change_application(sim, &request);
  else change_credential(sim, &request);
  if (sim_has_place(sim, &request)) (void)sim_ask(sim, &request);
}
