import type { StateWord } from '../../contract/words/states.js'
import type { Io } from '../io.js'
import { cut, type Paint, paintOf, printable, type Tone, toneOf, widthOf } from './text.js'

/** A column of a table. */
export interface Column<Row> {
  readonly title: string
  readonly value: (row: Row) => string | number | undefined
  /** Numbers are aligned to the right. */
  readonly align?: 'right'
  readonly tone?: (row: Row) => Tone
  /** This column may be cut when a row is too long. Ids are never cut, so that they can be copied. */
  readonly cuts?: true
  /** Left out on a narrow terminal: `--json` and the commands for one object still show the value. */
  readonly isExtra?: boolean
}

/** The column of a state, in the words of the console and the documentation. */
export const stateColumn = <Row>(wordOf: (row: Row) => StateWord, title = 'STATE'): Column<Row> => ({
  title,
  value: (row) => wordOf(row).word,
  tone: (row) => toneOf(wordOf(row)),
})

/** Space between two columns. */
const GAP = '  '
/** The minimum width of a cut column. */
const MIN_WIDTH = 8

/**
 * A table with a header. On a terminal, the widest columns that may be cut are cut until a row fits into a line. In a pipe
 * or a file, values are complete.
 * @param none text to return if there are no rows. Default: only the header.
 */
export function renderTable<Row>(io: Io, all: readonly Column<Row>[], rows: readonly Row[], none?: string): string {
  if (rows.length === 0 && none !== undefined) return none
  const paint = paintOf(io)
  // A column of notes has no title; it is left out if there are no notes.
  const used = all.filter(({ title, value }) => title !== '' || rows.some((row) => value(row) !== undefined))
  const columns = io.terminal?.out === true ? fittingColumns(used, rows, io.terminal.columns()) : used
  const titles = columns.map(({ title }) => title)
  const body = rows.map((row) => columns.map(({ value }) => printable(String(value(row) ?? ''))))
  const widths = fitWidths(
    titles.map((title, index) =>
      body.reduce((most, cells) => Math.max(most, widthOf(cells[index] ?? '')), widthOf(title)),
    ),
    columns.map(({ cuts }) => cuts === true),
    io.terminal?.out === true ? io.terminal.columns() : undefined,
  )
  const head = lineOf(columns, titles, widths, () => 'dim', paint)
  const lines = body.map((cells, index) => {
    const row = rows[index] as Row
    return lineOf(columns, cells, widths, ({ tone }) => tone?.(row) ?? 'plain', paint)
  })
  return [head, ...lines].join('')
}

/** Leaves out extra columns, the last one first, until the others fit into a line (when cut to their minimum). */
function fittingColumns<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  available: number,
): readonly Column<Row>[] {
  const least = columns.map(({ title, value, cuts }) => {
    const width = Math.max(widthOf(title), ...rows.map((row) => widthOf(printable(String(value(row) ?? '')))))
    return cuts === true ? Math.min(width, MIN_WIDTH) : width
  })
  const isNeeded = least.reduce((sum, width) => sum + width, GAP.length * (columns.length - 1)) > available
  const last = columns.findLastIndex(({ isExtra }) => isExtra)
  return isNeeded && last >= 0 ? fittingColumns(columns.toSpliced(last, 1), rows, available) : columns
}

function lineOf<Row>(
  columns: readonly Column<Row>[],
  cells: readonly string[],
  widths: readonly number[],
  toneOf: (column: Column<Row>) => Tone,
  paint: Paint,
): string {
  const parts = columns.map((column, index) => {
    const width = widths[index] ?? 0
    const text = cut(cells[index] ?? '', width)
    const blanks = ' '.repeat(width - widthOf(text))
    const painted = paint(toneOf(column), text)
    if (column.align === 'right') return blanks + painted
    return index === columns.length - 1 ? painted : painted + blanks
  })
  return `${parts.join(GAP).trimEnd()}\n`
}

/** Narrows the widest column that may be cut, until a row fits or no column can be cut further. */
function fitWidths(
  widths: readonly number[],
  cuts: readonly boolean[],
  available = Number.POSITIVE_INFINITY,
): number[] {
  const fitted = [...widths]
  const total = () => fitted.reduce((sum, width) => sum + width, GAP.length * (fitted.length - 1))
  while (total() > available) {
    const widest = Math.max(...fitted.filter((_, index) => cuts[index]))
    if (widest <= MIN_WIDTH) break
    const at = fitted.findIndex((width, index) => cuts[index] && width === widest)
    fitted[at] = widest - 1
  }
  return fitted
}

/** A named value of an object; left out when it has no value. */
export type Fact = readonly [name: string, value: string | number | boolean | undefined, tone?: Tone]

/** The fact of a state. */
export const stateFact = (word: StateWord): Fact => ['state', word.word, toneOf(word)]

/** Named values, one per line, with aligned names. */
export function renderFacts(io: Io, facts: readonly Fact[]): string {
  const paint = paintOf(io)
  const shown = facts.filter(([, value]) => value !== undefined && value !== '')
  const width = Math.max(0, ...shown.map(([name]) => name.length))
  const blanks = (name: string): string => ' '.repeat(width - name.length + GAP.length)
  return shown
    .map(([name, value, tone]) => {
      const text = typeof value === 'boolean' ? yesNo(value) : printable(String(value))
      return `${paint('dim', name)}${blanks(name)}${paint(tone ?? 'plain', text)}\n`
    })
    .join('')
}

const yesNo = (value: boolean): string => (value ? 'yes' : 'no')
