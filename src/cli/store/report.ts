import type { CopyReport } from '../../store/maintenance.js'
import type { Io } from '../io.js'
import { bytes, counted, duration, figure } from '../terminal/figures.js'
import { type Column, renderTable } from '../terminal/table.js'
import { printable } from '../terminal/text.js'

/** Whether everything in the source was copied, or can be copied in case of a dry run. */
export function isComplete({ damage }: CopyReport): boolean {
  return damage.gaps.length === 0 && damage.setAside === 0 && damage.lost.length === 0
}

const DIGEST: Column<CopyReport['tables'][number]> = { title: 'DIGEST', value: ({ digest }) => digest?.slice(0, 16) }

/** The report for people: rows of each table, what happened, what to do next. */
export function renderReport(io: Io, report: CopyReport): string {
  const used = report.tables.filter(({ rows }) => rows > 0)
  const table = renderTable(
    io,
    [
      { title: 'TABLE', value: ({ name }) => name },
      { title: 'ROWS', value: ({ rows }) => figure(rows), align: 'right' },
      ...(report.isCopied ? [DIGEST] : []),
    ],
    used,
  )
  return `${table}\n${report.isCopied ? copied(report) : checked(report)}${damageIn(report)}`
}

const FOUND = {
  empty: 'The target is empty',
  unfinished: 'The target holds an unfinished copy, which would be continued',
  outdated: 'The target holds an unfinished copy of an older state, which would be emptied first',
} as const

function checked({ from, to, rows, bytes: size, target }: CopyReport): string {
  return `${counted(rows, 'row')} (${bytes(size)}) of ${from} can be copied to ${to}. ${FOUND[target]}. Nothing was written.\n`
}

function copied({ from, to, rows, copiedNow, tookMs }: CopyReport): string {
  const earlier = copiedNow < rows ? `, ${figure(copiedNow)} of them by this run` : ''
  return `${counted(rows, 'row')} of ${from} copied to ${to}${earlier}, in ${duration(tookMs)}. Every table was compared: both stores hold the same rows.
The source is unchanged. Next: start the server with the other store, see docs/moving.md.
`
}

function damageIn({ damage, setAsideFile }: CopyReport): string {
  const { gaps, setAside, changed, repaired, lost, examples } = damage
  const lines = [
    ...lost,
    gaps.length > 0 &&
      `${counted(gaps.length, 'range of rows', 'ranges of rows')} cannot be read in the source and ${gaps.length === 1 ? 'is' : 'are'} missing in the target.`,
    setAside > 0 &&
      `${counted(setAside, 'row')} cannot be stored in the target. The file ${setAsideFile} has ${setAside === 1 ? 'it' : 'them'}.`,
    changed > 0 &&
      `${counted(changed, 'content differs', 'contents differ')} from the checksum and ${changed === 1 ? 'was' : 'were'} copied unchanged. Requests that need such a content are refused as before.`,
    repaired > 0 &&
      `${counted(repaired, 'text is', 'texts are')} not valid UTF-8 and ${repaired === 1 ? 'was' : 'were'} copied as the server reads such texts, with U+FFFD in place of the invalid bytes.`,
    ...examples.map((example) => `  ${example}`),
  ].filter((line) => typeof line === 'string')
  return lines.map((line) => `${printable(line)}\n`).join('')
}

/** The report as JSON. */
export function reportAsJson(report: CopyReport): string {
  const { damage } = report
  const shown = {
    from: report.from,
    to: report.to,
    copied: report.isCopied,
    complete: isComplete(report),
    target: report.target,
    rows: report.rows,
    bytes: report.bytes,
    copied_now: report.copiedNow,
    seconds: Math.round(report.tookMs / 100) / 10,
    tables: report.tables,
    damage: {
      gaps: damage.gaps,
      set_aside: damage.setAside,
      changed: damage.changed,
      repaired: damage.repaired,
      lost: damage.lost,
      examples: damage.examples,
    },
    set_aside_file: report.setAsideFile,
  }
  return `${JSON.stringify(shown, undefined, 2)}\n`
}
