/** Looks at an engine that runs, for the statistics of its database: one `INFO` and the sizes of its files. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { askEngine } from './ask.js'
import type { ControlAddress } from './control.js'
import { numberIn, usedBytesIn } from './info.js'
import type { EngineSample, MemberRole } from './types.js'

/** A member that serves, with what a look at it needs. */
export interface SampledMember {
  readonly region: string
  readonly role: MemberRole
  readonly generation: number
  readonly address: ControlAddress
  /** Its data directory. */
  readonly dir: string
}

/** What one engine tells. */
interface Seen {
  readonly keys: number
  readonly usedBytes: number
  readonly hits: number
  readonly misses: number
  readonly monitors: number
}

/** Looks at the members of a database; the first is its primary. */
export async function sampleMembers(members: readonly SampledMember[]): Promise<EngineSample | undefined> {
  const [primary] = members
  if (!primary) return undefined
  const [diskBytes, ...seen] = await Promise.all([bytesIn(primary.dir), ...members.map(({ address }) => look(address))])
  return {
    keys: seen[0]?.keys ?? 0,
    usedBytes: seen[0]?.usedBytes ?? 0,
    diskBytes,
    monitors: seen.reduce((sum, { monitors }) => sum + monitors, 0),
    lookups: members.map(({ generation }, index) => {
      const { hits, misses } = seen[index] ?? { hits: 0, misses: 0 }
      return { generation, hits, misses }
    }),
  }
}

async function look(address: ControlAddress): Promise<Seen> {
  const [info = '', clients = ''] = await askEngine(address, [['INFO'], ['CLIENT', 'LIST']])
  return {
    keys: Number(/^db0:keys=(\d+)/m.exec(info)?.[1] ?? 0),
    usedBytes: usedBytesIn(info),
    hits: numberIn(info, 'keyspace_hits'),
    misses: numberIn(info, 'keyspace_misses'),
    monitors: [...clients.matchAll(/ flags=\w*O/g)].length,
  }
}

/** A file that goes while we look at it, such as an old log, counts for nothing. */
async function bytesIn(dir: string): Promise<number> {
  const entries = await readdir(dir, { withFileTypes: true, recursive: true }).catch(() => [])
  const files = entries.filter((entry) => entry.isFile())
  const sizes = files.map(async ({ parentPath, name }) => {
    const facts = await stat(join(parentPath, name)).catch(() => undefined)
    return facts?.size ?? 0
  })
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}
