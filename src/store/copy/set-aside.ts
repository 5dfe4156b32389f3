import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Table } from './catalog.js'
import type { FaultyRow, Value } from './rows.js'

/** Writes rows that a target cannot hold to a file in the data directory, as JSON lines; private, as rows have secrets. */
export class SetAside {
  readonly path: string

  /** @param startedAt when the copy began, Unix milliseconds; a copy that continues adds to its file. */
  constructor(dataDir: string, startedAt: number) {
    const time = new Date(startedAt).toISOString().replace(/[-:]|\.\d+/g, '')
    this.path = join(dataDir, `set-aside-${time}.jsonl`)
  }

  /** Adds rows; they are on the disk when it resolves. After a crash, a row may be in the file twice. */
  async add({ name: table }: Table, rows: readonly FaultyRow[]): Promise<void> {
    if (rows.length === 0) return
    const lines = rows.map(({ reason, values }) => `${JSON.stringify({ table, reason, row: shown(values) })}\n`)
    const file = await open(this.path, 'a', 0o600)
    try {
      await file.appendFile(lines.join(''))
      await file.sync()
    } finally {
      await file.close()
    }
  }
}

const shown = (values: Readonly<Record<string, Value>>): object =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, shownValue(value)]))

function shownValue(value: Value): unknown {
  if (typeof value === 'bigint') return String(value)
  return typeof value === 'object' && value !== null ? { base64: Buffer.from(value).toString('base64') } : value
}
