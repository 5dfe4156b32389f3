import { EVENT_LEVELS, type EventLevel } from '../../contract/logs/declaration.js'
import type { LogEvent } from '../../contract/logs/events.js'
import { type Logger, lineOf } from '../logger.js'

/** A line that a module has logged. */
export interface RecordedLine {
  readonly level: EventLevel
  readonly event: LogEvent
  readonly text: string
  /** As the module gave them, errors included. */
  readonly fields: Readonly<Record<string, unknown>>
}

/** A logger that keeps its lines, and their texts. */
export interface RecordedLog {
  readonly logger: Logger
  readonly lines: RecordedLine[]
  readonly texts: string[]
}

/** Makes a logger that keeps lines of these levels. Default: all. */
export function recordedLog(levels: readonly EventLevel[] = EVENT_LEVELS): RecordedLog {
  const lines: RecordedLine[] = []
  const texts: string[] = []
  const at =
    (level: EventLevel) =>
    (event: LogEvent, fields: object): void => {
      if (!levels.includes(level)) return
      const [, text] = lineOf(event, fields as Record<string, unknown>)
      lines.push({ level, event, text, fields: { ...fields } })
      texts.push(text)
    }
  return { lines, texts, logger: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } }
}
