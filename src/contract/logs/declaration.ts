import type { LogFieldName } from './fields.js'

/** Areas of events, in the order in which `docs/logs.md` lists them. */
export const LOG_AREAS = [
  'Server',
  'Cluster',
  'HTTP',
  'Accounts',
  'Databases',
  'Backups',
  'Engines',
  'Disk',
  'Gateway',
  'Certificates',
  'Queue',
  'Bulk actions',
  'Alerts',
  'OpenTelemetry',
] as const

/** Levels of events. `error`: a person must act. `warn`: a person should act when there is time. */
export const EVENT_LEVELS = ['debug', 'info', 'warn', 'error'] as const

/** The level of an event. */
export type EventLevel = (typeof EVENT_LEVELS)[number]

/** A field of an event; with a question mark, lines may lack it. */
export type FieldSpec = LogFieldName | `${LogFieldName}?`

/** The name of a field, without the question mark. */
export const nameOf = (spec: FieldSpec): LogFieldName => {
  const isOptional = (name: FieldSpec): name is `${LogFieldName}?` => name.endsWith('?')
  return isOptional(spec) ? (spec.slice(0, -1) as LogFieldName) : spec
}

/** An event that the server logs, declared once: the line, the types of its fields and `docs/logs.md` come from it. */
export interface EventDeclaration {
  readonly area: (typeof LOG_AREAS)[number]
  readonly level: EventLevel
  /** The text of the line. `{name}` stands for the value of a field. */
  readonly text: string
  readonly fields: readonly FieldSpec[]
}

/** Makes the function that declares the events of an area. */
export const declareIn =
  <const Area extends EventDeclaration['area']>(area: Area) =>
  <const Level extends EventLevel, const Fields extends readonly FieldSpec[]>(
    level: Level,
    text: string,
    ...fields: Fields
  ) => ({ area, level, text, fields })
