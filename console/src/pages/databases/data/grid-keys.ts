/** The keyboard in the list of keys: the usual keys of a tree. */
import type { KeyRow } from './key-rows.js'
import type { KeyTree } from './key-tree.js'

/** A key that was pressed. */
export interface Pressed {
  readonly key: string
  readonly shiftKey: boolean
  /** Ctrl, or Command on a Mac. */
  readonly isMeta: boolean
}

/** The position of the keyboard in the list. */
export interface Place {
  /** The active row. */
  readonly active: number
  /** The row at which a selection with Shift began. */
  readonly anchor: number
}

/** What a pressed key does. */
export type Reaction =
  | { readonly kind: 'move'; readonly to: number; readonly extends: boolean }
  | { readonly kind: 'open-folder'; readonly row: KeyRow & { kind: 'folder' }; readonly isOpen: boolean }
  | { readonly kind: 'open-key'; readonly row: KeyRow & { kind: 'key' } }
  | { readonly kind: 'toggle'; readonly row: KeyRow }
  | { readonly kind: 'select-all' }
  | { readonly kind: 'select-none' }
  | { readonly kind: 'delete' }

/** The reaction to a key; `undefined`: none, so the browser handles the key. `page` is the number of rows on the screen. */
export function reactionTo(pressed: Pressed, tree: KeyTree, place: Place, page: number): Reaction | undefined {
  const { count } = tree.rows()
  if (count === 0) return undefined
  const { active } = place
  const to = targetOf(pressed.key, active, count, page)
  if (to !== undefined) return { kind: 'move', to, extends: pressed.shiftKey }
  if (pressed.isMeta) return pressed.key.toLowerCase() === 'a' ? { kind: 'select-all' } : undefined
  const row = tree.rows().at(Math.min(active, count - 1))
  switch (pressed.key) {
    case ' ':
      return { kind: 'toggle', row }
    case 'Enter':
      if (row.kind === 'key') return { kind: 'open-key', row }
      return { kind: 'open-folder', row, isOpen: !tree.isOpen(row.folder) }
    case 'ArrowRight':
      if (row.kind === 'key') return undefined
      return tree.isOpen(row.folder) ? moveTo(active + 1) : { kind: 'open-folder', row, isOpen: true }
    case 'ArrowLeft':
      return towardsParent(row, tree)
    case 'Escape':
      return tree.selected.size > 0 ? { kind: 'select-none' } : undefined
    // Backspace is the delete key of a Mac.
    case 'Backspace':
    case 'Delete':
      return tree.selected.size > 0 ? { kind: 'delete' } : undefined
    default:
      return undefined
  }
}

const moveTo = (to: number): Reaction => ({ kind: 'move', to, extends: false })

function targetOf(key: string, active: number, count: number, page: number): number | undefined {
  const steps: Readonly<Record<string, number>> = {
    ArrowDown: active + 1,
    ArrowUp: active - 1,
    PageDown: active + page,
    PageUp: active - page,
    Home: 0,
    End: count - 1,
  }
  const to = steps[key]
  return to === undefined ? undefined : Math.max(0, Math.min(count - 1, to))
}

function towardsParent(row: KeyRow, tree: KeyTree): Reaction | undefined {
  if (row.kind === 'folder' && tree.isOpen(row.folder)) return { kind: 'open-folder', row, isOpen: false }
  const parent = row.kind === 'folder' ? row.folder.parent : row.folder
  const index = parent === undefined ? -1 : tree.rows().indexOf(parent)
  return index < 0 ? undefined : moveTo(index)
}

/** Moves the end of a selected range. Rows inside the new range are selected, and rows that are no longer in it are not. */
export function selectRange(tree: KeyTree, anchor: number, before: number, after: number): void {
  const covers = (index: number): boolean =>
    anchor <= after ? index >= anchor && index <= after : index <= anchor && index >= after
  const rows = tree.rows()
  for (let index = Math.min(anchor, before, after); index <= Math.max(anchor, before, after); index++) {
    const row = rows.at(index)
    // The keys of an open folder have rows of their own. A closed folder stands for its keys.
    if (row.kind === 'key' || !tree.isOpen(row.folder)) tree.select(row, covers(index))
  }
}
