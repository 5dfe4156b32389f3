/**
 * The catalogue of events: every line that the server logs has a name, a level, a text and fields, declared once. Names
 * and fields are stable, so that programs can search for them; texts may change. `docs/logs.md` is generated from it.
 */
import { DATA_PLANE_EVENTS } from './data-plane-events.js'
import { declareIn, type EventDeclaration, type EventLevel } from './declaration.js'
import type { LogFieldName, LogFieldValue } from './fields.js'

const server = declareIn('Server')
const cluster = declareIn('Cluster')
const http = declareIn('HTTP')
const accounts = declareIn('Accounts')
const queue = declareIn('Queue')
const bulk = declareIn('Bulk actions')
const alerts = declareIn('Alerts')
const openTelemetry = declareIn('OpenTelemetry')

const REQUEST = [
  'requestId',
  'service',
  'method',
  'path',
  'status',
  'durationMs',
  'bytes?',
  'accountId?',
  'databaseId?',
] as const

/** Every event by its name. */
export const LOG_EVENTS = {
  problem_error: server('error', '{title} {advice}', 'kind', 'subject', 'title', 'advice'),
  problem_warning: server('warn', '{title} {advice}', 'kind', 'subject', 'title', 'advice'),
  problem_solved: server('info', 'a problem is solved', 'kind', 'subject'),
  server_crashed: server(
    'error',
    'a defect in {module} ends the server; start it again',
    'module',
    'kind',
    'file?',
    'error',
  ),
  client_memory_eviction_failed: server('error', 'evicting a client from memory has failed', 'error'),
  lost_commit_not_compared: server(
    'warn',
    '{what} could not be compared with the store after a lost commit; trying again',
    'what',
    'error',
  ),
  service_backup_made: server('info', 'a backup of the whole service is complete: {file}', 'file', 'durationMs'),
  service_backup_failed: server('error', 'the backup of the whole service has failed: {file}', 'file', 'error'),
  service_backup_without: server(
    'error',
    'the data of a database is missing in the backup of the whole service',
    'databaseId',
    'error',
  ),
  activity_not_stored: server('warn', 'recent activity of accounts is not stored yet', 'error'),
  store_mark_not_written: server('warn', 'the store mark is not written yet', 'error'),

  request_answered: http('debug', 'a request was answered', ...REQUEST),
  request_access: http('info', '{method} {path} {status}', ...REQUEST),
  request_failed: http('error', 'a request failed', 'requestId', 'reference', 'service', 'error'),

  account_deleted: accounts('info', 'an account is deleted', 'accountId'),
  account_deletion_pending: accounts('warn', 'the deletion of an account is not complete yet', 'error'),
  credentials_file_foreign: accounts(
    'warn',
    'credentials.json in the data directory {what}. The accounts keep working with the credentials in the store. Restore the file so that "homeport env" can print them.',
    'what',
  ),
  credentials_not_written: accounts(
    'warn',
    'credentials.json does not have the newest API key, signing keys and queue token yet; their next change writes the file again',
    'error',
  ),
  token_keys_not_written: accounts(
    'warn',
    'the keys with which other nodes encrypt queue tokens are not on the disk of this node yet; the next exchange of keys writes them',
    'error',
  ),
  credential_use_not_stored: accounts(
    'warn',
    'the times of the last use of keys and tokens are not stored yet',
    'error',
  ),

  otlp_setting_ignored: openTelemetry('warn', 'OpenTelemetry: {reason}', 'reason'),
  otlp_export_failed: openTelemetry(
    'warn',
    'OpenTelemetry: {what} cannot be exported. Check that the collector runs, that OTEL_EXPORTER_OTLP_ENDPOINT is its address for OTLP over HTTP, and the credentials in OTEL_EXPORTER_OTLP_HEADERS. Homeport keeps serving and drops what does not fit into its buffer; this is logged once until an export succeeds',
    'what',
    'error',
  ),
  otlp_export_resumed: openTelemetry('info', 'OpenTelemetry: {what} are exported again', 'what'),
  ...DATA_PLANE_EVENTS,

  peer_certificate_not_renewed: cluster(
    'error',
    'the certificate for the link between nodes could not be renewed; trying again',
    'error',
  ),
  peer_listener_failed: cluster('error', 'the listener for other nodes failed', 'error'),
  peer_stream_over_memory: cluster(
    'warn',
    'a client that nodes forward was disconnected: its unread bytes took too much memory',
    'address',
  ),
  peer_strangers_closed: cluster(
    'warn',
    '{connections} connections to the port for other nodes were closed before they had shown a certificate: too many were open',
    'connections',
  ),
  peer_request_failed: cluster('warn', 'a request of another node could not be handled', 'topic', 'error'),
  queue_strays_found: queue('warn', 'pending messages were missing in memory; they are sent now', 'strays'),
  queue_sweep_failed: queue('warn', 'due messages could not be compared with the store', 'error'),
  queue_due_not_read: queue('error', 'due messages could not be read; trying again', 'error'),
  queue_partitions_not_opened: queue(
    'error',
    'the messages of new partitions could not be taken over; trying again',
    'error',
  ),
  queue_attempt_failed: queue('error', 'an attempt could not be made; trying again', 'messageId', 'error'),
  queue_out_of_descriptors: queue(
    'error',
    'no file descriptor is left for deliveries; trying again. Raise the limit of open files (`ulimit -n`)',
    'error',
  ),
  queue_out_of_ports: queue(
    'error',
    'no local port is left for connections to a destination; trying again. Widen the range (`net.ipv4.ip_local_port_range`)',
    'error',
  ),
  queue_outcome_not_stored: queue('error', 'an outcome could not be stored; trying again', 'messageId', 'error'),
  queue_message_unreadable: queue(
    'error',
    'a due message cannot be read, because the store is damaged; the others are delivered',
    'nextAt',
    'seq',
  ),
  queue_clock_unknown: queue('warn', 'cannot tell whether the clock was ahead, because the store is damaged', 'error'),
  queue_clock_set_back: queue(
    'warn',
    'the clock was ahead and was set back; due times from that period are moved back',
    'byMs',
  ),
  queue_clock_jumped: queue('warn', 'the clock was set ahead, or the machine was suspended', 'byMs'),
  queue_clock_not_corrected: queue('error', 'due times could not be corrected; the next start corrects them', 'error'),
  queue_retention_failed: queue('warn', 'old {what} could not be deleted; trying again later', 'what', 'error'),
  queue_retention_waits: queue(
    'warn',
    'the clock was set ahead by days; if that is wrong, set it back within a day: until then no {what} are deleted for their age',
    'what',
    'byMs',
  ),
  schedule_read_failed: queue('error', 'schedules could not be fired; trying again', 'error'),
  schedule_damaged: queue(
    'error',
    'a schedule cannot be fired, because the store is damaged',
    'accountId',
    'scheduleId',
    'error',
  ),
  schedule_moved_back: queue(
    'info',
    'the next fire of a schedule was moved back: the clock had been ahead',
    'scheduleId',
    'fromAt',
    'toAt',
  ),

  bulk_resumed: bulk('info', 'bulk actions continue after a restart', 'actions'),
  bulk_item_failed: bulk(
    'error',
    'an item of a bulk action could not be processed',
    'actionId',
    'chunk',
    'firstItem',
    'endItem',
    'error',
  ),
  bulk_paused: bulk('warn', 'bulk actions pause, because the store fails', 'pauseMs', 'error'),

  cluster_joined: cluster('info', 'this node has joined the cluster', 'node', 'incarnation'),
  cluster_leader: cluster('info', 'this node is now the leader', 'node'),
  cluster_leader_no_more: cluster('info', 'this node is no longer the leader', 'node'),
  cluster_node_dead: cluster(
    'warn',
    'a node has not reached PostgreSQL for 5 seconds and was declared dead; the others take over its work',
    'node',
    'incarnation',
  ),
  cluster_declared_dead: cluster(
    'error',
    'the other nodes have declared this node dead, so its process ends; start it again',
    'node',
    'error',
  ),
  cluster_partitions_given: cluster('info', 'partitions were handed over to other nodes', 'partitions', 'durationMs'),
  cluster_announcement_failed: cluster(
    'error',
    'a notification of another node was not handled; trying again',
    'error',
  ),
  cluster_announcement_set_aside: cluster(
    'error',
    'a notification of another node cannot be handled here; its change takes effect on this node at the next start',
    'topic',
    'seq',
    'error',
  ),
  cluster_look_failed: cluster('debug', 'the rows of the cluster cannot be read now', 'error'),
  cluster_not_left: cluster(
    'warn',
    'the store does not answer while this node stops; the others take over its work in 6 seconds',
    'error',
  ),
  alerts_not_current: alerts('warn', 'alerts are not up to date; trying again every 5 seconds', 'error'),
  alerts_retention_waits: alerts(
    'warn',
    'the clock was set ahead by days; if that is wrong, set it back within a day: until then no alerts are deleted for their age',
    'byMs',
  ),
} as const satisfies Readonly<Record<string, EventDeclaration>>

/** The name of an event. */
export type LogEvent = keyof typeof LOG_EVENTS

/** Whether a value is the name of an event. */
export const isEvent = (name: unknown): name is LogEvent => typeof name === 'string' && Object.hasOwn(LOG_EVENTS, name)

/** The events of a level. */
export type EventOf<Level extends EventLevel> = {
  [Name in LogEvent]: (typeof LOG_EVENTS)[Name]['level'] extends Level ? Name : never
}[LogEvent]

type SpecOf<Event extends LogEvent> = (typeof LOG_EVENTS)[Event]['fields'][number]
type Given<Spec> = Spec extends LogFieldName ? Spec : never
type Optional<Spec> = Spec extends `${infer Name extends LogFieldName}?` ? Name : never

/** The fields of an event. The line lacks fields that are `null` or `undefined`. */
export type EventFields<Event extends LogEvent> = {
  readonly [Name in Given<SpecOf<Event>>]: LogFieldValue<Name>
} & {
  readonly [Name in Optional<SpecOf<Event>>]?: LogFieldValue<Name> | null | undefined
}
