import { DATABASE_METRICS } from './database-metrics.js'
import type { MetricDeclaration } from './declaration.js'

type Kind = MetricDeclaration['kind']
type Area = MetricDeclaration['area']

const declare =
  (area: Area) =>
  (kind: Kind, help: string, ...labels: readonly string[]): MetricDeclaration => ({ area, kind, help, labels })

const server = declare('Server')
const ofProcess = declare('Process')
const store = declare('Store')
const queue = declare('Queue')
const endpoints = declare('Destinations')
const workflow = declare('Workflows')
const bulk = declare('Bulk actions')
const cluster = declare('Cluster')
const gateway = declare('Gateway and databases')

/** Every metric by its name. Names follow the conventions of Prometheus: the unit, and `_total` for counters. */
export const METRICS = {
  homeport_build_info: server(
    'gauge',
    'Always 1; the labels name the versions that run.',
    ...['version', 'node', 'engine', 'engine_version', 'store'],
  ),
  homeport_problems: server(
    'gauge',
    'Problems that need a person, as Home and /health show them.',
    ...['kind', 'severity'],
  ),
  homeport_disk_free_bytes: server('gauge', 'Free space of the disk with the data directory.'),
  homeport_disk_size_bytes: server('gauge', 'Size of the disk with the data directory.'),
  homeport_metrics_databases_omitted: server(
    'gauge',
    'Databases without separate series, because there are more than the option metricsDatabases allows.',
  ),

  process_start_time_seconds: ofProcess('gauge', 'Start time of the server process, Unix seconds.'),
  process_cpu_seconds_total: ofProcess('counter', 'CPU time of the server process, without engines.'),
  process_resident_memory_bytes: ofProcess('gauge', 'Resident memory of the server process, without engines.'),
  process_open_fds: ofProcess('gauge', 'Open file descriptors; Linux only.'),
  process_max_fds: ofProcess('gauge', 'Limit of open file descriptors; Linux only.'),
  nodejs_heap_used_bytes: ofProcess('gauge', 'Used memory of the JavaScript heap.'),
  nodejs_external_memory_bytes: ofProcess('gauge', 'Memory of buffers and other objects outside of the heap.'),
  nodejs_eventloop_utilization_ratio: ofProcess(
    'gauge',
    'Share of the time since the start that the event loop was busy.',
  ),
  nodejs_eventloop_lag_mean_seconds: ofProcess('gauge', 'Mean delay of the event loop since the previous scrape.'),
  nodejs_eventloop_lag_p99_seconds: ofProcess(
    'gauge',
    '99th percentile of the delays of the event loop since the previous scrape.',
  ),
  nodejs_eventloop_lag_max_seconds: ofProcess('gauge', 'Longest delay of the event loop since the previous scrape.'),

  homeport_store_transaction_duration_seconds: store(
    'histogram',
    'Time from the call of a transaction to its result; for a write, to its durable commit. access: read, write.',
    'access',
  ),
  homeport_store_transactions_pending: store('gauge', 'Transactions without a result. access: read, write.', 'access'),
  homeport_store_failed_transactions_total: store(
    'counter',
    'Transactions that ended in an error, refusals by their own rules included. access: read, write.',
    'access',
  ),
  homeport_store_checkpoints_total: store('counter', 'Checkpoints of the write-ahead log (SQLite).'),
  homeport_store_log_bytes: store('gauge', 'Size of the file of the write-ahead log (SQLite).'),
  homeport_store_size_bytes: store('gauge', 'Size of the file of the store (SQLite).'),

  homeport_queue_published_total: queue('counter', 'Messages that were accepted, without those of workflow runs.'),
  homeport_queue_deduplicated_total: queue('counter', 'Messages that were not stored, because they were duplicates.'),
  homeport_queue_deliveries_total: queue(
    'counter',
    'Attempts that ended. outcome: delivered, retried (failed, tried again later), failed (for good), cancelled.',
    'outcome',
  ),
  homeport_queue_delivery_duration_seconds: queue('histogram', 'Time from sending a request to its complete response.'),
  homeport_queue_delivery_delay_seconds: queue('histogram', 'Time from when an attempt was due to when it was sent.'),
  homeport_queue_delivery_attempts: queue('histogram', 'Attempts per message until it was delivered or failed.'),
  homeport_queue_dead_letters_total: queue('counter', 'Messages that failed for good, without those of runs.'),
  homeport_queue_flow_control_waits_total: queue('counter', 'Times that a due message waited for a flow-control key.'),
  homeport_queue_deliveries_in_flight: queue('gauge', 'Requests in flight, without those open for more than 2 s.'),
  homeport_queue_delivery_concurrency: queue('gauge', 'The option deliveryConcurrency.'),
  homeport_queue_messages_in_memory: queue('gauge', 'Pending messages that the dispatcher holds in memory.'),
  homeport_queue_strays_total: queue(
    'counter',
    'Pending messages that were missing in memory until a sweep found them. Causes: lost commits, lost hints of other nodes.',
  ),
  homeport_queue_messages: queue(
    'gauge',
    'Stored messages, those of runs included. state: pending, held (waits for its turn in a queue), dead.',
    'state',
  ),
  homeport_queue_oldest_due_age_seconds: queue('gauge', 'How late the most overdue message is; 0 if none is.'),
  homeport_queue_schedule_fires_total: queue('counter', 'Fires of schedules.'),
  homeport_queue_schedule_failures_total: queue('counter', 'Fires that could not publish a message.'),
  homeport_queue_schedule_delay_seconds: queue('gauge', 'How late the most overdue schedule is; 0 if none is.'),

  homeport_endpoint_deliveries_total: endpoints(
    'counter',
    'Attempts that ended, by destination host. outcome: delivered, retried (failed, tried again later), failed (for good).',
    ...['host', 'outcome'],
  ),
  homeport_endpoint_delivery_seconds_total: endpoints(
    'counter',
    'Sum of the times from sending a request to its complete response, by destination host.',
    'host',
  ),

  homeport_workflow_runs_started_total: workflow('counter', 'Runs that were started.'),
  homeport_workflow_runs_ended_total: workflow(
    'counter',
    'Runs that ended. state: success, failed, cancelled.',
    'state',
  ),
  homeport_workflow_runs: workflow('gauge', 'Stored runs. state: active, dead (failed, kept to be resumed).', 'state'),
  homeport_workflow_steps_total: workflow('counter', 'Results of steps that were stored.'),
  homeport_workflow_step_duration_seconds: workflow(
    'histogram',
    'Time of one request to the endpoint of a run, which executes a step.',
  ),
  homeport_workflow_call_duration_seconds: workflow('histogram', 'Time of one request of context.call.'),
  homeport_workflow_retries_total: workflow('counter', 'Requests of runs that failed and are tried again.'),
  homeport_workflow_waits: workflow('gauge', 'Pending waits for events.'),

  homeport_cluster_nodes: cluster(
    'gauge',
    'Nodes that take part in the cluster, as this node sees it, itself included.',
  ),
  homeport_cluster_partitions: cluster(
    'gauge',
    'Partitions whose messages this node sends; all nodes together have 64.',
  ),
  homeport_cluster_leader: cluster('gauge', '1 on the leader, 0 on the other nodes.'),
  homeport_cluster_beats_missed_total: cluster(
    'counter',
    'Beats of this node that failed, or that waited for the previous beat. After 4 s without a beat it sends no messages; after 5 s the other nodes declare it dead.',
  ),
  homeport_cluster_declared_dead_total: cluster('counter', 'Nodes that this node has declared dead.'),
  homeport_cluster_announcements_total: cluster(
    'counter',
    'Notifications that a node did not acknowledge, so they went through PostgreSQL and took up to 7 s.',
  ),
  homeport_cluster_handover_seconds: cluster('histogram', 'Time to hand partitions over to other nodes.'),

  homeport_bulk_actions_active: bulk('gauge', 'Bulk actions that are running.'),
  homeport_bulk_items_total: bulk(
    'counter',
    'Items of bulk actions that got an outcome. outcome: succeeded, already_finished, already_cancelled, not_found, failed.',
    'outcome',
  ),

  homeport_gateway_commands_total: gateway(
    'counter',
    'Commands sent to engines. kind: reads, writes, scripts, others.',
    'kind',
  ),
  homeport_gateway_bytes_total: gateway(
    'counter',
    'Bytes received from clients and sent to them. direction: in, out.',
    'direction',
  ),
  homeport_gateway_command_duration_seconds: gateway(
    'histogram',
    'Time from sending a command to its reply; of commands sent together, one is measured. kind: reads, writes.',
    'kind',
  ),
  homeport_gateway_connections: gateway('gauge', 'Open client connections.'),
  homeport_gateway_connections_accepted_total: gateway('counter', 'Client connections accepted.'),
  homeport_gateway_limit_hits_total: gateway(
    'counter',
    'Commands refused or delayed by a limit. limit: data_size, requests (of the month, or its budget), command_rate (delayed), connections.',
    'limit',
  ),
  homeport_databases: gateway('gauge', 'Databases. state: awake, asleep, suspended.', 'state'),
  homeport_database_wake_ups_total: gateway('counter', 'Times that a sleeping database was woken.'),
  homeport_database_promotions_total: gateway('counter', 'Databases that this node has taken over from a lost home.'),
  homeport_engine_failures_total: gateway(
    'counter',
    'Engine processes that ended unexpectedly or did not start; Homeport restarts each.',
  ),
  homeport_backups_total: gateway('counter', 'Backups that ended. outcome: completed, failed.', 'outcome'),

  ...DATABASE_METRICS,
} as const satisfies Readonly<Record<string, MetricDeclaration>>

/** The name of a metric. */
export type MetricName = keyof typeof METRICS
