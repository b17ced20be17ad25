package reference

// attribute is a search attribute of runs.
type attribute struct{ name, kind, doc string }

// attributes are the search attributes that `starter setup` adds to a namespace; a test compares them with what
// workflows write.
var attributes = []attribute{
	{"RepriseStatus", "Keyword", "The status of the run. It changes when the run ends, is paused or queued, or awaits an answer, and when everything in it waits for a retry or for a person. In loops and child runs, that wait must last at least 30 s and a hundredth of the run's time so far."},
	{"ReprisePlaybook", "Keyword", "The name of the playbook."},
	{"RepriseDeadLetters", "Int", "The number of failed iterations of the run."},
	{"RepriseNextRetry", "Datetime", "When the first retry of a step is due, not counting those in loops, as of the last change of the status."},
	{"RepriseOrigin", "Keyword", "For a run that repeats failed iterations: the workflow ID of the run in which they failed."},
	{"RepriseLabels", "KeywordList", "The labels of the playbook, each as `name=value`."},
}

// variable is an environment variable that a program reads.
type variable struct {
	name, of, doc string
	absent        string // what counts without it
	example       string
}

const (
	ofWorkers  = "worker, and the local worker of starter"
	ofPrograms = "worker and starter"
)

// variables are all variables that the programs read; a test compares them with the code.
var variables = []variable{
	{"REPRISE_TASK_QUEUE", ofPrograms, "The task queue of the workers. Same as `--task-queue`.", "reprise", "reprise"},
	{"REPRISE_CONNECTIONS", ofWorkers + ", and serve", "A YAML file of connections by name. Same as `--connections`.", "none", "/etc/reprise/connections.yaml"},
	{"REPRISE_AUTH_NAME", ofWorkers + ", and serve", "The connection `name`; replace NAME with its name in upper case. The value is a URL, a form such as `bearer:TOKEN`, or an OAuth 2.0 client as JSON.", "none", "postgres://user:password@db.example.com/clinic"},
	{"REPRISE_SECRET_KEY", ofWorkers + ", and serve", "The key that encrypts secret results and signs the tokens of answers. All programs need the same key. Older keys may follow, separated by commas.", "none; a local server makes its own", "NEW,OLD"},
	{"REPRISE_SECRET_KEY_FILE", ofWorkers + ", and serve", "A file that has the value of `REPRISE_SECRET_KEY`, in its place. It is read again when it changes.", "none", "/run/credentials/reprise-worker@clinic.service/secret-key"},
	{"REPRISE_CODEC_KEY", ofPrograms, "The key that encrypts every value and every failure that Temporal and the payload store keep. All programs of the namespace need the same key. Older keys may follow, separated by commas.", "none; values are plain", "NEW,OLD"},
	{"REPRISE_CODEC_KEY_FILE", ofPrograms, "A file that has the value of `REPRISE_CODEC_KEY`, in its place. It is read again when it changes.", "none", "/run/credentials/reprise-worker@clinic.service/codec-key"},
	{"REPRISE_CODEC_REQUIRED", ofPrograms, "`true` refuses values that are not encrypted with a key of `REPRISE_CODEC_KEY`. Same as `--codec-required` of `worker`.", "false", "true"},
	{"REPRISE_CALLBACK_URL", ofWorkers, "The URL at which other systems reach `starter serve` to send answers. Same as `--callback-url`.", "none; a local worker accepts answers itself", "https://reprise.example.com"},
	{"REPRISE_DIRECTORY", "worker", "The folder to which paths of the tools `file` and `sqlite` are relative. Same as `--directory`.", "the working directory", "/var/lib/reprise"},
	{"REPRISE_PLAYBOOKS", ofWorkers + ", and serve", "The folder of the playbooks that other playbooks run by name. Same as `--playbooks`.", "none; for starter run the folder of the playbook, for starter dev the working directory", "/etc/reprise/playbooks"},
	{"REPRISE_ALLOW_PYTHON", "worker", "`true` lets playbooks run Python with the rights of the worker. Same as `--allow-python`.", "false", "true"},
	{"REPRISE_LOG_LEVEL", "worker", "`debug`, `info` (retried attempts), `warn` (failures that ended a call) or `error`. Same as `--log-level`.", "warn", "info"},
	{"REPRISE_LOG_FORMAT", "worker", "`text` or `json`. Same as `--log-format`.", "text", "json"},
	{"REPRISE_LOG_FILE", "worker", "A file that also gets the log, as JSON from level `info`; `starter logs` reads it. Same as `--log-file`.", "none", "/var/log/reprise/worker.log"},
	{"REPRISE_RETRY_MAX_RETRIES_LIMIT", ofPrograms, "The most retries that a policy may have.", "10", "20"},
	{"REPRISE_RETRY_MAX_DELAY_LIMIT", ofPrograms, "The longest delay that a policy may have.", "1h", "6h"},
	{"REPRISE_RUNS_LIMIT", ofWorkers, "The most child runs that a top-level run may have, at any depth.", "10000", "50000"},
	{"REPRISE_VISITS_LIMIT", ofWorkers, "How often a run may visit one step, if routes lead back to it.", "1000", "5000"},
	{"REPRISE_CACHE_BYTES", ofWorkers, "The memory in use above which the worker drops its cached workflows, in bytes, at least 33554432. Same as `--cache-bytes`.", "half of GOMEMLIMIT or of the cgroup's limit, else 512 MiB", "1073741824"},
	{"REPRISE_HEARTBEAT", "worker", "The time between two heartbeats of an attempt, from 2s to 60s, which a run records when it starts. A lost worker is noticed after five. Same as `--heartbeat`.", "2s", "10s"},
	{"REPRISE_DEPLOYMENT", "worker", "The deployment that the worker is a build of, which turns Temporal's Worker Versioning on. Same as `--deployment`.", "none", "clinic"},
	{"REPRISE_BUILD", "worker", "The ID of the build within its deployment. Same as `--build` of `worker`.", "version and commit", "v0.1.0"},
	{"REPRISE_VERSIONING", "worker", "`pinned` keeps runs on the build that started them, `auto-upgrade` moves them to the current one. Same as `--versioning`.", "pinned", "auto-upgrade"},
	{"REPRISE_RATE_LIMITS", ofWorkers, "A YAML file of rate limits that no playbook may exceed. Same as `--rate-limits`.", "none", "/etc/reprise/rate-limits.yaml"},
	{"REPRISE_EGRESS", ofWorkers, "A YAML file of the addresses to which tools may connect. Same as `--egress`.", "for worker public addresses and the hosts of connections; for a local worker all addresses that are not link-local", "/etc/reprise/egress.yaml"},
	{"REPRISE_PAYLOAD_STORE", ofPrograms, "Where values over 128 KiB are stored. All programs need the same store. Same as `--payload-store`.", "none; a folder for local servers", "s3://reprise-payloads/clinic?region=eu-central-1"},
	{"REPRISE_MAX_RESULT_BYTES", ofWorkers, "The largest value, as JSON in bytes, from 262144 to 536870912, if there is a payload store.", "67108864, which is 64 MiB", "134217728"},
	{"REPRISE_MAX_ANSWERS_BYTES", ofWorkers, "The memory for the responses of all attempts of a worker together, in bytes, at least 67108864.", "268435456, which is 256 MiB", "536870912"},
	{"REPRISE_HEALTH_ADDRESS", ofWorkers, "The host:port at which probes find `/livez` and `/readyz`. Same as `--health-address`.", "none", "127.0.0.1:9465"},
	{"REPRISE_METRICS_ADDRESS", ofWorkers, "The host:port at which Prometheus scrapes metrics. Same as `--metrics-address`.", "none", "127.0.0.1:9464"},
	{"REPRISE_TRACE_HEADERS", ofWorkers, "`false` keeps `traceparent` out of requests of `http`. Same as `--trace-headers`.", "true", "false"},
	{"REPRISE_UI_URL", "starter", "The URL of Temporal's web UI, for links to runs; if unset, `TEMPORAL_UI_URL`.", "no links", "https://temporal.example.com"},
	{"REPRISE_DEVSERVER", "starter", "The program that is started as local server.", "temporal on the PATH, else devserver beside starter, else bin/devserver of the checkout", "/usr/local/bin/temporal"},
	{"DEVSERVER_API_KEY", "devserver", "The API key that clients must send. starter sets it for the server that it starts.", "none", "KEY"},
	{"DEVSERVER_POSTGRES", "devserver", "The URL of a PostgreSQL database in which the server keeps its state, for tests. Same as `--postgres`.", "none: in a file or in memory", "postgres://user:password@127.0.0.1:5432/temporal"},
	{"DEVSERVER_UI_SOCKET", "devserver", "The Unix socket of the web UI, in a folder with mode 0700; the web UI then has no port. starter sets it.", "none; with a key there is no web UI then", "/run/user/1000/reprise/ui"},
	{"DEVSERVER_UI_PATH", "devserver", "The path prefix of the web UI. starter sets it.", "none", "/temporal"},
	{"REPRISE_PLAYBOOK_KEYS", "worker", "The file of public keys whose signatures make playbooks known. Same as `--playbook-keys`.", "none", "/etc/reprise/keys.pem"},
	{"REPRISE_ONLY_KNOWN", "worker", "Whether the worker runs known playbooks only. Same as `--only-known`.", "`false`", "true"},
	{"REPRISE_TOKEN_SPOOL", "worker", "The folder where tokens of logins outlive this worker. Same as `--token-spool` of `worker`.", "none", "/var/lib/reprise/tokens"},
	{"REPRISE_SECRETS_DIRECTORY", ofWorkers + ", and serve", "The folder of secret files, which connections refer to as `{from: file, path: PATH}`. Same as `--secrets-directory` of `worker`.", "none", "/etc/reprise/secrets"},
	{"VAULT_ADDR", ofWorkers + ", and serve", "The URL of Vault, for secrets with `from: vault`. `VAULT_NAMESPACE`, `VAULT_CACERT` and `VAULT_TOKEN` also apply.", "none", "https://vault.example.com:8200"},
	{"REPRISE_VAULT_LOGIN", ofWorkers + ", and serve", "How the program logs in to Vault: `token`, `approle` or `kubernetes`.", "`token`", "kubernetes"},
	{"REPRISE_VAULT_ROLE", ofWorkers + ", and serve", "The role ID of `approle`, or the name of the role of `kubernetes`.", "none", "reprise"},
	{"REPRISE_VAULT_LOGIN_FILE", ofWorkers + ", and serve", "A file that has the token of Vault, the secret ID of `approle`, or the service account's token of `kubernetes`. It is read at each login.", "none; for `kubernetes` the pod's token", "/run/secrets/vault-secret-id"},
	{"REPRISE_VAULT_MOUNT", ofWorkers + ", and serve", "The mount of Vault's login method.", "the name of the method", "teams/approle"},
	{"AWS_ENDPOINT_URL_SECRETS_MANAGER", ofWorkers + ", and serve", "The URL of AWS Secrets Manager, for secrets with `from: aws`. AWS's variables for credentials and regions also apply.", "that of the region", "https://vpce-1.secretsmanager.eu-central-1.vpce.amazonaws.com"},
	{"GOOGLE_CLOUD_PROJECT", ofWorkers + ", and serve", "The project of secrets with `from: gcp` whose names lack one. Google's variables for credentials also apply, such as `GOOGLE_APPLICATION_CREDENTIALS`.", "that of the credentials", "shop-prod"},
	{"CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER", ofWorkers + ", and serve", "The URL of Google Cloud Secret Manager, for secrets with `from: gcp`.", "that of the location", "https://secretmanager-shop.p.googleapis.com"},
	{"TEMPORAL_ADDRESS", ofPrograms, "The host:port of the Temporal server. Same as `--address`. Temporal's other variables also apply, such as `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY`, `TEMPORAL_TLS` and `TEMPORAL_PROFILE`.", "for starter a local server, for worker 127.0.0.1:7233", "temporal.example.com:7233"},
	{"TEMPORAL_API_KEY_FILE", ofPrograms, "A file that has the value of `TEMPORAL_API_KEY`, in its place. It is read again when it changes.", "none", "/var/run/secrets/temporal/api-key"},
	{"OTEL_EXPORTER_OTLP_ENDPOINT", ofPrograms, "The URL to which metrics and traces are sent, as OTLP over HTTP. OpenTelemetry's other variables also apply, such as `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER` and `OTEL_SDK_DISABLED`.", "nothing is sent", "http://localhost:4318"},
}

// file is a file that a program reads.
type file struct{ name, of, doc, example string }

// files are the files that operators write; a test checks the examples.
var files = []file{
	{
		"connections.yaml", ofWorkers + ", and serve",
		"The file of `--connections`: a map of names to connections. A connection for `http` is `https://user:password@host`, `bearer:TOKEN` or " +
			"`header:NAME: VALUE`, the last two optionally followed by `@` and the host, or a map of what is sent: `bearer`, `basic`, `header`, `headers`, " +
			"`query`, `oauth2`, `session`, `jwt`, `aws` and `tls`, with `host` and `cookies: keep` beside them. A connection for `postgres` is a URL, or a map of `url`, `user` and `password`. `uses` limits the `tools` and `task_queues` that may use one. " +
			"A secret is a text, or `{from: file, path: PATH}`, `{from: env, name: NAME}`, `{from: vault, path: PATH}`, `{from: aws, name: NAME}` or `{from: gcp, name: NAME}`, with `field` and `refresh`. The file is read again when it changes. " +
			"Connections that are not in the file are read from `REPRISE_AUTH_NAME`.",
		`pg_main: postgres://user:password@db.example.com/clinic
crm: bearer:TOKEN@https://crm.example.com
weather:
  query: {api_key: {from: file, path: weather}}
  headers: {X-Account: acme}
  host: https://api.weather.example.com
shop:
  host: https://shop.example.com
  session:
    login: {url: /login, body: {user: reprise, password: {from: file, path: shop}}}
    token: "{{ response.token }}"
    send: {header: X-Session}
orders:
  oauth2:
    token_url: https://login.example.com/oauth2/token
    client_id: reprise
    client_secret: SECRET`,
	},
	{
		"rate-limits.yaml", ofWorkers,
		"The file of `--rate-limits`: a map of keys, shared names or hosts to limits that no playbook may exceed: `requests` and `per`, and `max_pause`, which limits how long a `Retry-After` of one attempt holds back the others.",
		`api.example.com: {requests: 100, per: 1s}
github: {requests: 5000, per: 1h, max_pause: 15m}`,
	},
	{
		"egress.yaml", ofWorkers,
		"The file of `--egress`: which addresses `http`, `webhook`, notices, logins and `postgres` may connect to. `private` and `public` are `allow` or `deny` for " +
			"private and public addresses; `allow` and `deny` are lists of ranges, addresses and hosts, each with a port or without. `deny` wins. " +
			"Link-local addresses always need an entry in `allow`, by address.",
		`private: deny
allow: [10.2.0.0/16, "api.internal:443", "*.corp.example.com"]
deny: [10.2.7.1]`,
	},
	{
		"callers.yaml", "serve, and ui",
		"The file of `--tokens`: a map of callers to the SHA-256 hashes of their tokens, the playbooks that they may start (`*` for all), and their `role` in `starter ui`. In place of `playbooks`, " +
			"`roles` maps patterns of playbooks to one or more of `start`, `read`, `steer`, `answer`, `decode` and `admin`. `starter serve token new NAME` prints a token and its entry. The key `jwt` names an identity provider, whose tokens have the roles in the claim " +
			"`roles_claim`: `ROLE`, or `PATTERN=ROLE,ROLE`.",
		`ci: {sha256: HASH, playbooks: [nightly]}
ops: {sha256: OTHER, roles: {"*": read, "billing-*": [steer, answer]}, role: operator}
jwt:
  issuer: https://login.example.com/realms/ops
  audience: reprise
  jwks_url: https://login.example.com/realms/ops/protocol/openid-connect/certs
  roles_claim: realm_access.roles`,
	},
}
