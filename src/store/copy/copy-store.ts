import { type Clock, systemClock } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { MIGRATIONS } from '../migrations/index.js'
import { reasonOf } from '../postgres/errors.js'
import { Audit, type Damage } from './audit.js'
import { type Table, tablesToCopy } from './catalog.js'
import { type OpenSource, type OpenTarget, openSource, openTarget, type StoreLocation } from './ends.js'
import { checkSource, checkTarget, prepareTarget, type TargetState } from './prepare.js'
import {
  type CopyHeader,
  headerIn,
  headerNote,
  type TableNote,
  tableNote,
  UNTOUCHED,
  unmarkStatements,
} from './progress.js'
import { type Batch, Digest } from './rows.js'
import { SetAside } from './set-aside.js'
import type { CopyTarget, Refused } from './types.js'

/** Source, target and settings of a copy. The caller holds the lock of the data directory. */
export interface CopyOptions {
  readonly from: StoreLocation
  readonly to: StoreLocation
  readonly dataDir: string
  /** Id of the installation that the data directory belongs to, if any: a copy from or to another store is refused. */
  readonly boundTo?: string | undefined
  /** Only checks and counts; writes nothing. */
  readonly isDryRun: boolean
  readonly onProgress?: (progress: CopyProgress) => void
  readonly clock?: Clock
}

/** How far a copy is. */
export interface CopyProgress {
  readonly phase: 'copy' | 'compare'
  readonly table: string
  /** Rows so far and altogether. */
  readonly rows: number
  readonly total: number
}

/** A table of a report. */
export interface CopiedTable {
  readonly name: string
  readonly rows: number
  /** Digest of its rows in the target; only after a copy. */
  readonly digest?: string
}

/** The result of a copy, or of its dry run. */
export interface CopyReport {
  readonly from: string
  readonly to: string
  /** What the target was before: empty, or an unfinished copy, which continues or starts over. */
  readonly target: TargetState
  readonly isCopied: boolean
  readonly tables: readonly CopiedTable[]
  readonly rows: number
  /** Size of the source. */
  readonly bytes: number
  /** Rows that this run has copied, and how long it took. */
  readonly copiedNow: number
  readonly tookMs: number
  readonly damage: Damage
  /** The file of the rows that the target cannot hold; undefined when there are none. */
  readonly setAsideFile: string | undefined
}

/**
 * Copies all tables of a stopped server's store into another one. The source is only read. A copy that was interrupted
 * continues. The target becomes usable when it has been compared with the source.
 * @throws HomeportError `store_copy_refused`, `store_copy_stopped`, `store_copy_differs`, `store_newer`,
 * `store_not_opened`.
 */
export async function copyStore(options: CopyOptions): Promise<CopyReport> {
  const source = await openSource(options.from, options.dataDir)
  try {
    const target = await openTarget(options.to, options.dataDir)
    try {
      return await new StoreCopy(options, source, target).run()
    } finally {
      await target.close()
    }
  } catch (error) {
    if (error instanceof HomeportError) throw error
    throw new HomeportError('store_copy_stopped', { reason: reasonOf(error) }, { cause: error })
  } finally {
    await source.close()
  }
}

class StoreCopy {
  readonly #options: CopyOptions
  readonly #source: OpenSource
  readonly #target: OpenTarget
  readonly #clock: Clock
  readonly #tables = tablesToCopy()
  readonly #audit = new Audit()
  readonly #counts = new Map<Table, number>()
  #total = 0
  #done = 0
  #copiedNow = 0

  constructor(options: CopyOptions, source: OpenSource, target: OpenTarget) {
    this.#options = options
    this.#source = source
    this.#target = target
    this.#clock = options.clock ?? systemClock
  }

  async run(): Promise<CopyReport> {
    const { reader, place } = this.#source
    const startedAt = this.#clock.now()
    const { boundTo, dataDir } = this.#options
    const installation = await checkSource(reader, place)
    if (boundTo !== undefined && boundTo !== installation) {
      const problem = `The data directory ${dataDir} belongs to another installation than ${place}. Set the right --data-dir.`
      throw new HomeportError('store_copy_refused', { problem })
    }
    const header: CopyHeader = {
      format: 1,
      installation,
      from: this.#options.from === 'sqlite' ? 'sqlite' : 'postgres',
      fingerprint: await reader.fingerprint(),
      migrations: MIGRATIONS.map(({ number }) => number),
      startedAt,
      differs: false,
    }
    const existing = this.#target.existing()
    const state = existing ? await checkTarget(existing, header, this.#target.place, this.#tables) : 'empty'
    await this.#countRows()
    if (this.#options.isDryRun) return await this.#report(state, startedAt, new Map(), undefined)
    const target = this.#target.create()
    const progress = await prepareTarget(target, state, header, this.#tables, this.#target.place)
    const aside = new SetAside(this.#options.dataDir, headerIn(await target.notes())?.startedAt ?? startedAt)
    for (const table of this.#tables) {
      progress.set(table, await this.#copyTable(target, table, progress.get(table) ?? UNTOUCHED, aside))
    }
    const digests = await this.#compare(target, progress, header)
    await this.#finish(target)
    const report = await this.#report(state, startedAt, digests, { progress, aside })
    return { ...report, isCopied: true }
  }

  async #countRows(): Promise<void> {
    for (const table of this.#tables) {
      const rows = await this.#source.reader.count(table)
      this.#counts.set(table, rows)
      this.#total += rows
    }
  }

  async #copyTable(target: CopyTarget, table: Table, from: TableNote, aside: SetAside): Promise<TableNote> {
    this.#advance('copy', table, from.copied)
    if (from.isDone) return from
    let note = from
    const isWhole = from.cursor === undefined
    if (isWhole) this.#audit.begin(table)
    const findings = isWhole ? { findings: this.#audit.findings } : {}
    for await (const batch of this.#source.reader.rows(table, { after: from.cursor, order: 'fixed', ...findings })) {
      if (isWhole) this.#audit.add(table, batch)
      note = await this.#write(target, table, batch, note, aside)
      this.#copiedNow += batch.starts.length
      this.#advance('copy', table, batch.starts.length)
    }
    note = { ...note, isDone: true }
    await target.change([], tableNote(table, note))
    return note
  }

  async #write(target: CopyTarget, table: Table, batch: Batch, before: TableNote, aside: SetAside): Promise<TableNote> {
    let note = before
    await target.write(table, batch, async (refused: readonly Refused[]) => {
      await aside.add(table, [...batch.faulty, ...refused])
      const digest = Digest.from(before.refused)
      for (const { row } of refused) digest.add(row)
      note = {
        cursor: batch.cursor,
        copied: before.copied + batch.starts.length - refused.length,
        refused: { rows: digest.rows, hex: digest.hex },
        faulty: before.faulty + batch.faulty.length,
        isDone: false,
      }
      return tableNote(table, note)
    })
    return note
  }

  #advance(phase: CopyProgress['phase'], { name: table }: Table, rows: number): void {
    this.#done += rows
    this.#options.onProgress?.({ phase, table, rows: this.#done, total: this.#total })
  }

  /** Compares all tables of both stores. Reads the source tables again that this run has not read from their beginning. */
  async #compare(
    target: CopyTarget,
    progress: ReadonlyMap<Table, TableNote>,
    header: CopyHeader,
  ): Promise<Map<Table, Digest>> {
    this.#done = 0
    const digests = new Map<Table, Digest>()
    const differing: string[] = []
    for (const table of this.#tables) {
      const [found] = await Promise.all([this.#digestOf(target, table), this.#readAgain(table)])
      const expected = (this.#audit.digests.get(table) ?? new Digest()).without(
        (progress.get(table) ?? UNTOUCHED).refused,
      )
      if (found.hex !== expected.hex || found.rows !== expected.rows) differing.push(table.name)
      digests.set(table, found)
    }
    if (differing.length === 0) return digests
    await target.change([], headerNote({ ...header, differs: true }))
    throw new HomeportError('store_copy_differs', { tables: differing })
  }

  async #digestOf(target: CopyTarget, table: Table): Promise<Digest> {
    const digest = new Digest()
    for await (const batch of target.reader.rows(table, { order: 'any' })) {
      digest.addAll(batch)
      this.#advance('compare', table, batch.starts.length)
    }
    return digest
  }

  async #readAgain(table: Table): Promise<void> {
    if (this.#audit.digests.has(table)) return
    this.#audit.begin(table)
    for await (const batch of this.#source.reader.rows(table, { order: 'any', findings: this.#audit.findings })) {
      this.#audit.add(table, batch)
    }
  }

  /** Brings everything to the disk before it removes the mark of an unfinished copy. */
  async #finish(target: CopyTarget): Promise<void> {
    for (const table of this.#tables) {
      if (table.numbered) await target.setNumber(table, await this.#source.reader.lastNumber(table))
    }
    await target.settle()
    await target.change(unmarkStatements)
    await target.settle()
  }

  async #report(
    state: TargetState,
    startedAt: number,
    digests: ReadonlyMap<Table, Digest>,
    done: { readonly progress: ReadonlyMap<Table, TableNote>; readonly aside: SetAside } | undefined,
  ): Promise<CopyReport> {
    const notes = [...(done?.progress.values() ?? [])]
    const setAside = notes.reduce((sum, { faulty, refused }) => sum + faulty + refused.rows, 0)
    const tables = this.#tables.map((table) => {
      const digest = digests.get(table)
      return {
        name: table.name,
        rows: digest?.rows ?? this.#counts.get(table) ?? 0,
        ...(digest && { digest: digest.hex }),
      }
    })
    const { gaps, changed, repaired, examples } = this.#audit
    return {
      from: this.#source.place,
      to: this.#target.place,
      target: state,
      isCopied: false,
      tables,
      rows: tables.reduce((sum, { rows }) => sum + rows, 0),
      bytes: await this.#source.reader.sizeBytes(),
      copiedNow: this.#copiedNow,
      tookMs: this.#clock.now() - startedAt,
      damage: { gaps, setAside, changed, repaired, lost: this.#source.damage, examples },
      setAsideFile: setAside > 0 ? done?.aside.path : undefined,
    }
  }
}
