import { Checkbox } from '@mantine/core'
import { useDebouncedValue, useElementSize, useMergedRef } from '@mantine/hooks'
import { type CSSProperties, type KeyboardEvent, type MouseEvent, useCallback, useMemo, useRef, useState } from 'react'
import type { KeyName } from '../../../../../src/contract/databases/keys/key-name.js'
import type { KeyFacts } from '../../../../../src/contract/databases/keys/key-store.js'
import type { DataPlane } from '../../../api/data-plane.js'
import { reactionTo, selectRange } from './grid-keys.js'
import classes from './key-grid.module.css'
import { idOf, Row } from './key-grid-row.js'
import type { KeyList } from './key-list.js'
import type { KeyRow } from './key-rows.js'
import type { KeyTree, Selected } from './key-tree.js'
import { useFacts } from './reads.js'
import { scrolledTo, windowAt } from './row-window.js'

const ROW_HEIGHT = 34
/** Time without scrolling after which the facts of visible keys are requested, milliseconds. */
const SETTLED_MS = 150

/** The list of keys. */
export interface KeyGridProps {
  readonly plane: DataPlane
  readonly list: KeyList
  /** Changes with the list. */
  readonly version: number
  readonly chosen: KeyName | undefined
  readonly onChoose: (name: KeyName) => void
  /** The Delete key was pressed, and something is selected. */
  readonly onDelete: () => void
}

/** The keys of the database as a list or tree of any length. It is one tab stop, with keyboard control and a selection. */
export function KeyGrid({ plane, list, version, chosen, onChoose, onDelete }: KeyGridProps) {
  const { tree } = list
  const grid = useRef<HTMLTableElement>(null)
  const [frame, setFrame] = useState<HTMLDivElement | null>(null)
  const { ref: sized, height } = useElementSize()
  const [scrollTop, setScrollTop] = useState(0)
  const [place, setPlace] = useState({ active: 0, anchor: 0 })
  const rows = tree.rows()
  const viewHeight = Math.max(0, height - ROW_HEIGHT)
  const seen = windowAt(scrollTop, viewHeight, ROW_HEIGHT, rows.count)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version stands for the content of the rows.
  const visible = useMemo(() => rowsBetween(tree, seen.first, seen.end), [tree, version, seen.first, seen.end])
  const facts = useVisibleFacts(plane, visible)
  const moveTo = useCallback(
    (to: number) => {
      if (frame) frame.scrollTop = scrolledTo(to, frame.scrollTop, viewHeight, ROW_HEIGHT, tree.rows().count)
    },
    [frame, tree, viewHeight],
  )
  const go = (to: number, isExtending: boolean) => {
    const anchor = isExtending ? place.anchor : to
    setPlace({ active: to, anchor })
    moveTo(to)
    if (isExtending) list.change((changed) => selectRange(changed, anchor, place.active, to))
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const { key, shiftKey, ctrlKey, metaKey } = event
    const page = Math.max(1, Math.floor(viewHeight / ROW_HEIGHT) - 1)
    const reaction = reactionTo({ key, shiftKey, isMeta: ctrlKey || metaKey }, tree, place, page)
    if (reaction === undefined) return
    event.preventDefault()
    event.stopPropagation()
    switch (reaction.kind) {
      case 'move':
        return go(reaction.to, reaction.extends)
      case 'open-folder':
        return list.change((changed) => changed.open(reaction.row.folder, reaction.isOpen))
      case 'open-key':
        return onChoose(reaction.row.name)
      case 'toggle':
        return list.change((changed) => changed.select(reaction.row, !isSelected(tree, reaction.row)))
      case 'select-all':
        return list.change((changed) => changed.selectAll(true))
      case 'select-none':
        return list.change((changed) => changed.selectAll(false))
      case 'delete':
        return onDelete()
    }
  }
  const onRow = (index: number, row: KeyRow, event: MouseEvent) => {
    // The grid takes the focus, because a focused row would lose it when it is scrolled away and removed.
    grid.current?.focus({ preventScroll: true })
    if (event.shiftKey) return go(index, true)
    setPlace({ active: index, anchor: index })
    if (event.target instanceof HTMLInputElement)
      return list.change((changed) => changed.select(row, !isSelected(tree, row)))
    if (row.kind === 'folder') return list.change((changed) => changed.open(row.folder, !tree.isOpen(row.folder)))
    onChoose(row.name)
  }
  const active = Math.min(place.active, rows.count - 1)
  const ref = useMergedRef(setFrame, sized)
  return (
    <>
      <div ref={ref} className={classes.frame} onScroll={(event) => setScrollTop(event.currentTarget.scrollTop)}>
        <table
          ref={grid}
          // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a table is what a treegrid is made of.
          role="treegrid"
          aria-label="Keys"
          aria-multiselectable
          aria-rowcount={rows.count + 1}
          aria-activedescendant={active >= seen.first && active < seen.end ? idOf(active) : undefined}
          tabIndex={0}
          aria-describedby={HINT}
          className={classes.grid}
          style={{ '--row-height': `${ROW_HEIGHT}px` } as CSSProperties}
          onKeyDown={onKeyDown}
        >
          <Head
            selected={tree.selectedOf()}
            onSelect={(isSelecting) => list.change((changed) => changed.selectAll(isSelecting))}
          />
          <tbody>
            <Spacer height={seen.top} />
            {visible.map((row, offset) => (
              <Row
                key={row.kind === 'key' ? `k${row.name}` : `f${row.folder.path}`}
                row={row}
                index={seen.first + offset}
                isActive={seen.first + offset === active}
                isChosen={row.kind === 'key' && row.name === chosen}
                facts={row.kind === 'key' ? facts.get(row.name) : undefined}
                selected={selectedOf(tree, row)}
                isOpen={row.kind === 'folder' && tree.isOpen(row.folder)}
                onPress={(event) => onRow(seen.first + offset, row, event)}
              />
            ))}
            <Spacer height={seen.height - seen.top - visible.length * ROW_HEIGHT} />
          </tbody>
        </table>
      </div>
      <p id={HINT} className={classes.hint}>
        Space selects, Shift ↓ selects more, Enter opens, Delete deletes what is selected.
      </p>
    </>
  )
}

const HINT = 'keys-hint'

function Head({ selected, onSelect }: { selected: Selected; onSelect: (isSelecting: boolean) => void }) {
  return (
    <thead>
      <tr aria-rowindex={1}>
        <th scope="col" className={classes.check}>
          <Checkbox
            size="xs"
            tabIndex={-1}
            aria-label="Select all keys"
            checked={selected === 'all'}
            indeterminate={selected === 'some'}
            onChange={() => onSelect(selected === 'none')}
          />
        </th>
        <th scope="col">Key</th>
        <th scope="col" className={classes.type}>
          Type
        </th>
        <th scope="col" className={classes.expiry}>
          Expires in
        </th>
        <th scope="col" className={classes.size}>
          Size
        </th>
      </tr>
    </thead>
  )
}

/** Fills the space of rows that are not rendered. It has one cell: more would add space for hidden columns, too. */
function Spacer({ height }: { height: number }) {
  if (height <= 0) return null
  return (
    <tr aria-hidden>
      <td style={{ height, padding: 0, border: 0 }} />
    </tr>
  )
}

function selectedOf(tree: KeyTree, row: KeyRow): Selected {
  if (row.kind === 'folder') return tree.selectedOf(row.folder)
  return tree.isSelected(row.name) ? 'all' : 'none'
}

const isSelected = (tree: KeyTree, row: KeyRow): boolean => selectedOf(tree, row) === 'all'

const rowsBetween = (tree: KeyTree, first: number, end: number): readonly KeyRow[] =>
  Array.from({ length: Math.max(0, end - first) }, (_, offset) => tree.rows().at(first + offset))

function useVisibleFacts(plane: DataPlane, visible: readonly KeyRow[]): ReadonlyMap<KeyName, KeyFacts> {
  const names = useMemo(() => visible.flatMap((row) => (row.kind === 'key' ? [row.name] : [])), [visible])
  const [settled] = useDebouncedValue(names, SETTLED_MS)
  return useFacts(plane, settled)
}
