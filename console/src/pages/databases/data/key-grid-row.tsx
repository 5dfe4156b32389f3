import IconChevronRight from 'icon:chevron-right'
import IconFolder from 'icon:folder'
import { Checkbox, UnstyledButton } from '@mantine/core'
import type { CSSProperties, MouseEvent } from 'react'
import type { KeyFacts } from '../../../../../src/contract/databases/keys/key-store.js'
import { bytes, counted, duration } from '../../../lib/format.js'
import classes from './key-grid.module.css'
import type { KeyRow } from './key-rows.js'
import type { Selected } from './key-tree.js'
import { shownName } from './shown-name.js'

/** The id of a row's element, for `aria-activedescendant`. */
export const idOf = (index: number): string => `key-row-${index}`

interface RowProps {
  readonly row: KeyRow
  readonly index: number
  readonly isActive: boolean
  readonly isChosen: boolean
  readonly selected: Selected
  readonly isOpen: boolean
  /** `undefined` until the facts have been read. */
  readonly facts: KeyFacts | undefined
  readonly onPress: (event: MouseEvent) => void
}

/** A folder or a key in the list. */
export function Row({ row, index, isActive, isChosen, selected, isOpen, facts, onPress }: RowProps) {
  const full = row.kind === 'key' ? shownName(row.name) : row.folder.path
  return (
    <tr
      id={idOf(index)}
      aria-rowindex={index + 2}
      aria-level={row.level}
      aria-selected={selected === 'all'}
      {...(row.kind === 'folder' && { 'aria-expanded': isOpen })}
      data-active={isActive || undefined}
      data-chosen={isChosen || undefined}
      style={{ '--level': row.level } as CSSProperties}
      onClick={onPress}
    >
      <td className={classes.check}>
        <Checkbox
          size="xs"
          tabIndex={-1}
          aria-label={`Select ${full}`}
          checked={selected === 'all'}
          indeterminate={selected === 'some'}
          readOnly
        />
      </td>
      <td title={full}>
        <div className={classes.name}>
          <Name row={row} full={full} isOpen={isOpen} />
        </div>
      </td>
      <FactCells facts={facts} />
    </tr>
  )
}

function Name({ row, full, isOpen }: { row: KeyRow; full: string; isOpen: boolean }) {
  return (
    <>
      {row.kind === 'folder' ? (
        <>
          <IconChevronRight size={14} className={classes.chevron} data-open={isOpen || undefined} aria-hidden />
          <IconFolder size={15} aria-hidden className={classes.mark} />
        </>
      ) : null}
      <UnstyledButton
        tabIndex={-1}
        fz="sm"
        className="truncate"
        {...(row.kind === 'key' && { c: 'var(--mantine-color-anchor)' })}
        aria-label={full === '' ? 'the key without a name' : full}
      >
        {row.label === '' ? '(empty)' : row.label}
      </UnstyledButton>
      {row.kind === 'folder' ? <span className={classes.count}>{counted(row.folder.count, 'key')}</span> : null}
    </>
  )
}

function FactCells({ facts }: { facts: KeyFacts | undefined }) {
  const isGone = facts?.type === 'none'
  return (
    <>
      <td className={classes.type}>{isGone ? 'gone' : facts?.type}</td>
      <td className={classes.expiry}>{facts === undefined || isGone ? '' : ttlText(facts)}</td>
      <td className={classes.size}>{facts?.bytes === undefined ? '' : bytes(facts.bytes)}</td>
    </>
  )
}

const ttlText = ({ ttlMs }: KeyFacts): string => (ttlMs === undefined ? '–' : duration(ttlMs))
