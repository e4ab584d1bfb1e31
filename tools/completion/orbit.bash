# Completion of Orbit's programs for bash: commands, options, and the words that options take. Source it, or put it where bash looks for
# completions. It asks no server and needs no other file.

_orbit_common="--help --version"
_orbit_states="WAITING LEASED RUNNING NEEDS_REVIEW SUCCEEDED FAILED CANCELLED"
_orbit_actions="task.accept task.lease task.start task.finish task.expire task.release task.cancel task.review task.retry
 namespace.create application.create application.change queue.create queue.change queue.pause queue.resume
 credential.create credential.rotate credential.revoke subscription.create subscription.delete
 schedule.create schedule.change schedule.pause schedule.resume schedule.delete"
_orbit_types="node.started node.stopped namespace.created application.created application.changed credential.created
 credential.rotated credential.revoked queue.created queue.changed queue.paused queue.resumed task.accepted task.leased
 task.started attempt.result attempt.ended task.requeued task.succeeded task.failed task.review_required task.cancelled
 task.cancel_requested task.reviewed task.retried evidence.recorded audit.recorded subscription.created
 subscription.acked subscription.deleted schedule.created schedule.changed schedule.paused schedule.resumed schedule.deleted
 schedule.triggered schedule.skipped"
_orbit_permissions="tasks:submit tasks:read tasks:cancel tasks:consume tasks:review tasks:retry tasks:audit:read events:read
 queues:read queues:manage schedules:read schedules:manage metrics:read admin"

# Where we are: _orbit_cur is the word being typed, _orbit_option the option whose value it is ("" for none). "--option=value" comes
# as three words.
_orbit_look() {
  _orbit_cur=${COMP_WORDS[COMP_CWORD]}
  local before=${COMP_WORDS[COMP_CWORD - 1]}
  if [[ $before == "=" ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $_orbit_cur == "=" ]]; then
    _orbit_cur=""
  fi
  _orbit_option=""
  [[ $before != -* ]] || _orbit_option=$before
}

# The words before the one being typed that are neither options nor their values. $1: options that take a value.
_orbit_plain() {
  local i word skip=""
  _orbit_words=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == "=" ]]; then
      skip=yes
    elif [[ -n $skip ]]; then
      skip=""
    elif [[ $word == -* ]]; then
      [[ " $1 " != *" $word "* || ${COMP_WORDS[i + 1]} == "=" ]] || skip=yes
    else
      _orbit_words+=("$word")
    fi
  done
}

_orbit_offer() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$_orbit_cur"); }
_orbit_files() { mapfile -t COMPREPLY < <(compgen -f -- "$_orbit_cur"); }
_orbit_directories() { mapfile -t COMPREPLY < <(compgen -d -- "$_orbit_cur"); }

# The value of the option, where its words are known. $1: output formats. False: it takes none, or it is not known.
_orbit_value() {
  case $_orbit_option in
    -o | --output) _orbit_offer "$1" ;;
    --data) _orbit_directories ;;
    --credentials | --admin-credentials | --root-credentials | --config) _orbit_files ;;
    --type) _orbit_offer "$_orbit_types task.* attempt.* queue.* schedule.* credential.*" ;;
    --action) _orbit_offer "$_orbit_actions task.*" ;;
    --state) _orbit_offer "$_orbit_states" ;;
    --outcome) _orbit_offer "SUCCEEDED FAILED" ;;
    --recovery-safety) _orbit_offer "RECONCILE_ONLY IDEMPOTENT" ;;
    --permissions) _orbit_offer "$_orbit_permissions" ;;
    --disabled | --checkpoint) _orbit_offer "true false" ;;
    --log-format) _orbit_offer "auto json text" ;;
    --since | --until | --at | --from | --to) _orbit_offer "now today yesterday" ;;
    *) return 1 ;;
  esac
}

_orbitd() {
  local valued="--config --data --listen --worker-listen --worker-url --log-format --http-threads --map-size --checkpoint
    --tls-cert --tls-key --connections-per-address --workers-per-credential --requests-per-credential
    --hot-window --retention --memory-max"
  _orbit_look
  _orbit_value "" && return
  [[ " $valued " != *" $_orbit_option "* || -z $_orbit_option ]] || return
  _orbit_offer "$valued --accept-future-log --allow-plain-text --metrics-open --core-dumps --check --print-config $_orbit_common"
}

_orbit_audit() {
  local valued="--data --since --until --task --queue --type --actor --action --operation --grep -n --lines -o --output"
  _orbit_look
  _orbit_plain "$valued"
  _orbit_value "text json jsonl csv msgpack" && return
  [[ " $valued " != *" $_orbit_option "* || -z $_orbit_option ]] || return
  if [[ ${#_orbit_words[@]} -eq 0 && $_orbit_cur != -* ]]; then
    _orbit_offer "log task operations export verify"
  elif [[ $_orbit_cur != -* && (${_orbit_words[0]} == export || ${_orbit_words[0]} == verify) ]]; then
    _orbit_files
  else
    _orbit_offer "$valued --all -f --follow -r --reverse --payload --local $_orbit_common"
  fi
}

_orbit_replay() {
  local valued="--data --at --from --to -o --output"
  _orbit_look
  _orbit_plain "$valued"
  _orbit_value "text json jsonl csv" && return
  [[ " $valued " != *" $_orbit_option "* || -z $_orbit_option ]] || return
  if [[ ${#_orbit_words[@]} -eq 0 && $_orbit_cur != -* ]]; then
    _orbit_offer "state queues diff stats verify rebuild backup salvage"
  elif [[ $_orbit_cur != -* && ${_orbit_words[0]} =~ ^(rebuild|backup|salvage)$ ]]; then
    _orbit_directories
  else
    _orbit_offer "$valued --chain-only --local $_orbit_common"
  fi
}

_orbit_bench() {
  local valued="--inflight --tasks --seconds --payload --batch --workers --capacity --idle-workers --feed-readers --rate --url --against --credentials -o --output"
  _orbit_look
  _orbit_plain "$valued"
  _orbit_value "text jsonl" && return
  [[ " $valued " != *" $_orbit_option "* || -z $_orbit_option ]] || return
  if [[ ${#_orbit_words[@]} -eq 0 && $_orbit_cur != -* ]]; then
    _orbit_offer "submit batch lifecycle paced mixed idle grow restart"
  else
    _orbit_offer "$valued --checkpoint $_orbit_common"
  fi
}

# The options of one command of orbitctl, without those of all.
_orbitctl_options() {
  case $1 in
    init) echo "--data --dev --admin-credentials --root-credentials --recovery-access" ;;
    "task submit") echo "--available-at --business-key --concurrency-key --handler --handler-version --key --payload --payload-version
      --priority --queue --start-deadline-at --timeout-ms --attempt-timeout-ms --initial-delay-ms --max-attempts --max-delay-ms
      --recovery-safety" ;;
    "task watch") echo "-i --interval-ms" ;;
    "task list") echo "--after --before --business-key --handler --queue --state" ;;
    "task cancel") echo "--key --reason --revision" ;;
    "task review") echo "--evidence --execution-settled --key --outcome --reason --result --revision" ;;
    "task retry") echo "--available-at --evidence --key --reason --revision --safe-to-retry --start-deadline-at --timeout-ms" ;;
    "queue create") echo "--key --key-concurrency --lease-ms --max-running --max-unfinished --name --rate" ;;
    "queue change") echo "--key --key-concurrency --lease-ms --max-running --max-unfinished --name --rate --revision" ;;
    "queue pause" | "queue resume") echo "--key --reason" ;;
    "schedule create") echo "--catch-up-limit --cron --end-at --interval-ms --key --kind --missed --name --overlap --paused --queue
      --start-at --template --timezone" ;;
    "schedule change") echo "--catch-up-limit --cron --end-at --interval-ms --key --missed --name --overlap --revision --start-at
      --template --timezone" ;;
    "schedule preview") echo "--after --count --cron --interval-ms --key --kind --timezone" ;;
    "schedule pause" | "schedule resume" | "schedule delete") echo "--key --reason" ;;
    "application create") echo "--key --max-unfinished --name" ;;
    "application change") echo "--disabled --key --max-unfinished --name --revision" ;;
    "credential create") echo "--application --expires-at --key --name --permissions --queues" ;;
    "credential rotate" | "credential revoke") echo "--key" ;;
    "namespace create") echo "--key --name" ;;
    "audit list") echo "--target" ;;
    top) echo "-i --interval-ms -n --rounds" ;;
    events) echo "-f --follow --types --queue --task --after" ;;
    "subscription create") echo "--from --key --name --queue --task --types" ;;
    "subscription read") echo "--limit --wait-ms" ;;
    "subscription ack") echo "--key --position" ;;
    "subscription delete") echo "--key" ;;
  esac
}

_orbitctl() {
  local flags=" --dev --recovery-access --execution-settled --safe-to-retry -f --follow --help --version -? -V "
  local word
  _orbit_look
  # Every option but these takes a value, so the plain words are found by that.
  local valued=""
  for word in "${COMP_WORDS[@]}"; do
    [[ $word != -* || $flags == *" $word "* ]] || valued+=" $word"
  done
  _orbit_plain "$valued"
  _orbit_value "text json jsonl csv" && return
  [[ -z $_orbit_option || $flags == *" $_orbit_option "* ]] || return
  case "${#_orbit_words[@]}:${_orbit_words[0]}" in
    0:) [[ $_orbit_cur == -* ]] || { _orbit_offer "init task why queue top schedule application credential namespace audit events subscription demo" && return; } ;;
    1:task) _orbit_offer "submit get attempts watch list cancel review retry operations operation events evidence" && return ;;
    1:queue) _orbit_offer "create list get change pause resume" && return ;;
    1:schedule) _orbit_offer "create list get change pause resume delete triggers preview" && return ;;
    1:application) _orbit_offer "create list get change" && return ;;
    1:credential) _orbit_offer "create list get rotate revoke" && return ;;
    1:namespace) _orbit_offer "create" && return ;;
    1:audit) _orbit_offer "list" && return ;;
    1:subscription) _orbit_offer "create list get read ack delete" && return ;;
  esac
  local command=${_orbit_words[0]}
  [[ ! $command =~ ^(task|queue|schedule|application|credential|namespace|audit|subscription)$ ]] || command+=" ${_orbit_words[1]}"
  _orbit_offer "$(_orbitctl_options "$command") --credentials --url -o --output $_orbit_common"
}

complete -F _orbitd orbitd
complete -F _orbitctl orbitctl
complete -F _orbit_audit orbit-audit
complete -F _orbit_replay orbit-replay
complete -F _orbit_bench orbit-bench
