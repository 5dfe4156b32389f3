import { Box, Table, UnstyledButton, VisuallyHidden } from '@mantine/core'
import { useVirtualizer } from '@tanstack/react-virtual'
import { memo, type ReactNode, useEffect, useRef } from 'react'
import classes from './data-table.module.css'
import { type Direction, type Order, orderAfter } from './sorting.js'

/** A column of a table. */
export interface Column<Row> {
  /** Unique in its table. */
  readonly key: string
  /** Empty for a column of buttons. */
  readonly title: string
  /** What screen readers say for an empty title. Default: Actions. */
  readonly spokenTitle?: string
  /** Long texts wrap, up to three lines, instead of being cut. */
  readonly wraps?: true
  /** A column of buttons that are one menu on phones. */
  readonly isMenuOnPhones?: true
  readonly render: (row: Row) => ReactNode
  /** CSS width such as `120px` or `30%`; columns without one share the rest. */
  readonly width?: string
  readonly align?: 'left' | 'right'
  /** Hidden in windows narrower than this; the columns that identify a row have none. */
  readonly from?: 'xs' | 'sm' | 'md' | 'lg'
  /** The heading is a button that sorts by this column, first in this direction. Needs `onOrder` of the table. */
  readonly sorts?: Direction
}

/** Above this many rows, only the visible ones are rendered. */
const DRAW_ALL_BELOW = 60
const MAX_TABLE_HEIGHT = 'calc(100dvh - 250px)'
const ROW_HEIGHT = 37
const OVERSCAN = 12
/** How many rows before the end the next page is requested. */
const NEAR_END = 15

/** Properties of a table. */
export interface DataTableProps<Row> {
  /** What the rows are, for screen readers. */
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly rowKey: (row: Row, index: number) => string
  /** Called on a click on a row; the row also needs a link or button for the keyboard. */
  readonly onOpen?: ((row: Row) => void) | undefined
  readonly isSelected?: (row: Row) => boolean
  /** Called when the reader scrolls near the end. */
  readonly onEnd?: (() => void) | undefined
  /** Shown when there are no rows. */
  readonly empty?: ReactNode
  /** Below the last row, such as a note that more is loading. */
  readonly footer?: ReactNode
  /** What the rows are sorted by. The caller sorts them, here or on the server. */
  readonly order?: Order | undefined
  /** Called with the new order after a press on a heading. */
  readonly onOrder?: ((order: Order) => void) | undefined
  /** The largest CSS height before the rows scroll. Default: most of the window, once there are many rows. */
  readonly maxHeight?: string
}

/** A table that stays fast with 100,000 rows and is a plain table for screen readers. */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { label, columns, rows, empty, footer, maxHeight } = props
  const frame = useRef<HTMLDivElement>(null)
  const seen = useSeenRows(rows.length, frame)
  const lastSeen = seen.last
  useEffect(() => {
    if (rows.length > 0 && lastSeen >= rows.length - NEAR_END) props.onEnd?.()
  }, [lastSeen, rows.length, props.onEnd])
  if (rows.length === 0 && empty !== undefined) return <>{empty}</>
  const isLong = maxHeight !== undefined || rows.length >= DRAW_ALL_BELOW
  return (
    <Box
      ref={frame}
      className={classes.frame ?? ''}
      mah={isLong ? (maxHeight ?? MAX_TABLE_HEIGHT) : undefined}
      style={isLong ? { overflowY: 'auto' } : undefined}
      // A scroll area must be reachable by keyboard.
      {...(isLong ? { tabIndex: 0, role: 'region', 'aria-label': `${label}, scrollable` } : {})}
    >
      <Table
        className={classes.table ?? ''}
        aria-label={label}
        aria-rowcount={rows.length + 1}
        stickyHeader={isLong}
        highlightOnHover
      >
        <Table.Thead className={classes.head ?? ''}>
          <Table.Tr>
            {columns.map((column) => (
              <Heading key={column.key} column={column} table={props} />
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody onClick={({ target }) => openRow(target, props)}>
          <Spacer height={seen.before} />
          {rows.slice(seen.first, seen.last + 1).map((row, offset) => {
            const index = seen.first + offset
            return (
              <Line
                key={props.rowKey(row, index)}
                row={row}
                index={index}
                columns={columns}
                opens={props.onOpen !== undefined}
                isSelected={props.isSelected?.(row) === true}
                measure={seen.measure}
              />
            )
          })}
          <Spacer height={seen.after} />
        </Table.Tbody>
      </Table>
      {footer}
    </Box>
  )
}

const ARIA_SORT = { asc: 'ascending', desc: 'descending' } as const

function Heading<Row>({ column, table }: { column: Column<Row>; table: DataTableProps<Row> }) {
  const { order, onOrder } = table
  const { key, title, spokenTitle = 'Actions', width, align = 'left', sorts, isMenuOnPhones } = column
  const direction = order?.by === key ? order.direction : undefined
  const isSortable = sorts !== undefined && onOrder !== undefined
  return (
    <Table.Th
      scope="col"
      {...(isMenuOnPhones ? { __vars: { '--column-width': width } } : { w: width })}
      ta={align}
      className={classesOf(column)}
      {...(isSortable && { 'aria-sort': direction === undefined ? 'none' : ARIA_SORT[direction] })}
    >
      {isSortable ? (
        <UnstyledButton className={classes.sorts ?? ''} onClick={() => onOrder(orderAfter(order, key, sorts))}>
          {title}
          <span aria-hidden className={classes.arrow} data-direction={direction}>
            {direction === 'desc' ? '↓' : '↑'}
          </span>
        </UnstyledButton>
      ) : title === '' ? (
        <VisuallyHidden>{spokenTitle}</VisuallyHidden>
      ) : (
        title
      )}
    </Table.Th>
  )
}

function useSeenRows(count: number, frame: React.RefObject<HTMLDivElement | null>) {
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: OVERSCAN,
    enabled: count >= DRAW_ALL_BELOW,
  })
  if (count < DRAW_ALL_BELOW) return { first: 0, last: count - 1, before: 0, after: 0, measure: undefined }
  const items = virtual.getVirtualItems()
  const first = items[0]
  const last = items.at(-1)
  return {
    first: first?.index ?? 0,
    last: last?.index ?? -1,
    before: first?.start ?? 0,
    after: virtual.getTotalSize() - (last?.end ?? 0),
    measure: virtual.measureElement,
  }
}

interface LineProps<Row> {
  readonly row: Row
  readonly index: number
  readonly columns: readonly Column<Row>[]
  readonly opens: boolean
  readonly isSelected: boolean
  /** Measures the row, if only visible rows are rendered. */
  readonly measure: ((row: HTMLTableRowElement | null) => void) | undefined
}

/** Renders again only when its row has changed, not with each refresh of the list. */
const Line = memo(function Line<Row>({ row, index, columns, opens, isSelected, measure }: LineProps<Row>) {
  return (
    <Table.Tr
      ref={measure}
      data-index={index}
      aria-rowindex={index + 2}
      className={opens ? (classes.opens ?? '') : ''}
      data-selected={isSelected || undefined}
    >
      {columns.map((column) => (
        <Table.Td key={column.key} ta={column.align ?? 'left'} className={classesOf(column)}>
          <Content>{column.render(row)}</Content>
        </Table.Td>
      ))}
    </Table.Tr>
  )
}) as <Row>(props: LineProps<Row>) => ReactNode

/** Opens the row of a click, unless it hit a link or button of the row, which handles it. */
function openRow<Row>(target: EventTarget, { rows, onOpen }: DataTableProps<Row>): void {
  if (!(target instanceof Element) || isOfControl(target)) return
  const row = rows[Number(target.closest('tr')?.dataset.index)]
  if (row !== undefined) onOpen?.(row)
}

/** Longer texts may be cut, and are shown whole on hover. */
const SHORT_TEXT = 16

function Content({ children }: { children: ReactNode }) {
  if (typeof children !== 'string') return children
  return (
    <div className={classes.text} {...(children.length > SHORT_TEXT && { title: children })}>
      {children}
    </div>
  )
}

/** Fills the space of rows that are not rendered. It has one cell: more would add space for hidden columns, too. */
function Spacer({ height }: { height: number }) {
  if (height <= 0) return null
  return (
    <tr aria-hidden>
      <td style={{ height, padding: 0 }} />
    </tr>
  )
}

type Look = Pick<Column<unknown>, 'title' | 'from' | 'wraps' | 'isMenuOnPhones'>

const classesOf = ({ title, from, wraps, isMenuOnPhones }: Look): string =>
  [
    classes.cell,
    title === '' && classes.buttons,
    wraps && classes.wraps,
    isMenuOnPhones && classes.menuOnPhones,
    from !== undefined && `mantine-visible-from-${from}`,
  ]
    .filter(Boolean)
    .join(' ')

const isOfControl = (target: Element): boolean => target.closest('a, button, input, label, [role="menuitem"]') !== null
