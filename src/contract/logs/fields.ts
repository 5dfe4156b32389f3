/** What a field of a log line is: its type in JSON, and its meaning. */
interface FieldDeclaration {
  /** `error` is an object: type, message, code, stack, causes. */
  readonly type: 'text' | 'number' | 'error'
  readonly meaning: string
}

const text = (meaning: string) => ({ type: 'text', meaning }) as const
const number = (meaning: string) => ({ type: 'number', meaning }) as const

/**
 * Every field that a log line may have. The logger writes no others, and no nested values but errors, so that a secret
 * cannot slip into a line as part of something larger.
 */
export const LOG_FIELDS = {
  error: { type: 'error', meaning: 'What failed: type, message, code, stack and causes.' },

  requestId: text('Id of the HTTP request, as in the header `X-Request-Id` of its response.'),
  reference: text('The reference that the caller got with an internal error.'),
  service: text('Which HTTP listener: `management`, `queue` or `rest`.'),
  method: text('HTTP method.'),
  path: text(
    'Path of the operation as declared, such as `/v2/redis/database/:id`: without the values in it. `(other)`: a page of the console, or no known path.',
  ),
  status: number('HTTP status of the response.'),
  durationMs: number('Duration, milliseconds. For a request: from its arrival to the end of the response.'),
  bytes: number('Bytes. For a request: size of the response body; absent for streams and for the REST data plane.'),
  address: text('Address of the client.'),
  topic: text('Subject of a message between nodes.'),

  accountId: text('Account or team.'),
  databaseId: text('Database.'),
  connections: number('How many connections.'),
  databases: number('How many databases are affected.'),
  region: text('Region of the engine.'),
  pid: number('Process id of the engine or launcher.'),
  code: number('Exit code of a process.'),
  signal: text('Signal that ended a process.'),
  detail: text('Details. For an engine that ended: its last output.'),
  reason: text('Why it happened.'),
  port: number('TCP port.'),
  plan: text('The new plan.'),
  budget: number('Monthly budget, US dollars.'),
  backupId: text('Backup.'),
  quarantineId: text('Entry of the quarantine: `homeport db quarantine`.'),
  kept: text('Where data was kept, relative to the data directory.'),
  cutBytes: number('Bytes that were cut off.'),
  freeBytes: number('Free bytes of the disk.'),
  neededBytes: number('Bytes that the operation needs.'),
  ended: number('How many processes were ended.'),

  node: text('Node of the cluster: the option `node`.'),
  incarnation: number('Incarnation of a node: a number that grows with every start of a node.'),
  partitions: number('How many partitions.'),

  messageId: text('Message of the queue.'),
  scheduleId: text('Schedule.'),
  nextAt: number('When it was due, Unix milliseconds.'),
  seq: number('Internal number of the stored row.'),
  byMs: number('By how much, milliseconds.'),
  pauseMs: number('Until the next try, milliseconds.'),
  actionId: text('Bulk action.'),
  actions: number('How many bulk actions.'),
  chunk: number('Batch of a bulk action.'),
  firstItem: number('First item of the batch, from 0.'),
  endItem: number('The item after the last one of the batch.'),
  fromAt: number('The old time, Unix milliseconds.'),
  toAt: number('The new time, Unix milliseconds.'),
  from: text('What it was before: a plan, or a path.'),
  what: text('What the line is about.'),
  strays: number('Pending messages that were missing in memory.'),

  kind: text('Kind of the problem or of the defect.'),
  subject: text('What the problem affects: a database id, a table, a file.'),
  title: text('What is wrong.'),
  advice: text('What to do.'),
  module: text('Module of Homeport, or the package, that threw the error.'),
  file: text('File with the crash report, or folder of the backup.'),
} as const satisfies Readonly<Record<string, FieldDeclaration>>

/** The name of a field. */
export type LogFieldName = keyof typeof LOG_FIELDS

interface Values {
  readonly text: string
  readonly number: number
  readonly error: unknown
}

/** The type of a field's value. */
export type LogFieldValue<Name extends LogFieldName> = Values[(typeof LOG_FIELDS)[Name]['type']]
