/**
 * The keys that a search has found, with the selection: in folders by a separator, or in one list without separator. It can
 * hold a million keys: adding one costs time in proportion to the depth of its folders, and only visible rows are computed.
 */
import type { KeyName } from '../../../../../src/contract/databases/keys/key-name.js'
import { type Folder, type KeyRow, type KeyRows, Node, Segments } from './key-rows.js'
import { shownName } from './shown-name.js'

/** Most levels of folders. The limit is needed because a name may consist of separators only. */
const MAX_LEVELS = 16

/** Whether all, some or none of the keys of a folder are selected. */
export type Selected = 'all' | 'some' | 'none'

/** The keys, their folders and the selection. */
export class KeyTree {
  /** The text at the end of folder names; empty: no folders. */
  readonly separator: string
  readonly #known = new Set<KeyName>()
  #root = newRoot()
  #selected = new Set<KeyName>()
  #rows: Segments | undefined

  constructor(separator: string) {
    this.separator = separator
  }

  get count(): number {
    return this.#known.size
  }

  /** The selected names, in the order of their selection. */
  get selected(): ReadonlySet<KeyName> {
    return this.#selected
  }

  has = (name: KeyName): boolean => this.#known.has(name)

  /** All names in the order of their addition. Names that are added during an iteration come last. */
  get names(): Iterable<KeyName> {
    return this.#known
  }

  /** Adds names. Known names are ignored, because SCAN may find a key twice. */
  add(names: Iterable<KeyName>): void {
    for (const name of names) {
      if (this.#known.has(name)) continue
      this.#known.add(name)
      const folder = this.#folderOf(name)
      folder.push(name)
      for (let node: Node | undefined = folder; node; node = node.parent) node.count++
    }
    this.#rows = undefined
  }

  /** Removes names, and folders that become empty. */
  remove(names: Iterable<KeyName>): void {
    const gone = new Set<KeyName>()
    for (const name of names) if (this.#known.delete(name)) gone.add(name)
    this.#rows = undefined
    if (this.#known.size === 0) {
      this.#root = newRoot()
      this.#selected.clear()
      return
    }
    const folders = new Set<Node>()
    for (const name of gone) {
      const folder = this.#folderOf(name)
      this.#selectKey(name, folder, false)
      folders.add(folder)
      for (let node: Node | undefined = folder; node; node = node.parent) node.count--
    }
    for (const folder of folders) {
      folder.names = folder.names.filter((name) => !gone.has(name))
      for (let node: Node = folder; node.parent && node.count === 0; node = node.parent) node.parent.drop(node)
    }
  }

  /** The rows, with the keys of open folders. */
  rows(): KeyRows {
    this.#rows ??= new Segments(this.#root, this.separator === '' ? 'found' : 'sorted')
    return this.#rows
  }

  isOpen = (folder: Folder): boolean => asNode(folder).isOpen

  /** Opens or closes a folder. */
  open(folder: Folder, isOpen: boolean): void {
    asNode(folder).isOpen = isOpen
    this.#rows = undefined
  }

  isSelected = (name: KeyName): boolean => this.#selected.has(name)

  /** How much of a folder is selected. Default: of the whole tree. */
  selectedOf(folder: Folder = this.#root): Selected {
    const { selected, count } = asNode(folder)
    if (selected === 0) return 'none'
    return selected === count ? 'all' : 'some'
  }

  /** Selects or deselects a row. A folder stands for all keys below it. */
  select(row: KeyRow, isSelected: boolean): void {
    if (row.kind === 'key') this.#selectKey(row.name, asNode(row.folder), isSelected)
    else this.#selectBelow(asNode(row.folder), isSelected)
  }

  /** Selects all keys, or none. */
  selectAll(isSelected: boolean): void {
    this.#selected = isSelected ? new Set(this.#known) : new Set()
    countBelow(this.#root, isSelected)
  }

  /** Selects or deselects keys of the tree. */
  selectNames(names: Iterable<KeyName>, isSelected: boolean): void {
    for (const name of names) if (this.#known.has(name)) this.#selectKey(name, this.#folderOf(name), isSelected)
  }

  #selectKey(name: KeyName, folder: Node, isSelected: boolean): void {
    if (this.#selected.has(name) === isSelected) return
    if (isSelected) this.#selected.add(name)
    else this.#selected.delete(name)
    for (let node: Node | undefined = folder; node; node = node.parent) node.selected += isSelected ? 1 : -1
  }

  #selectBelow(folder: Node, isSelected: boolean): void {
    const before = folder.selected
    this.#mark(folder, isSelected)
    countBelow(folder, isSelected)
    for (let node = folder.parent; node; node = node.parent) node.selected += folder.selected - before
  }

  #mark(folder: Node, isSelected: boolean): void {
    for (const name of folder.names) {
      if (isSelected) this.#selected.add(name)
      else this.#selected.delete(name)
    }
    for (const child of folder.folders.values()) this.#mark(child, isSelected)
  }

  #folderOf(name: KeyName): Node {
    let node = this.#root
    if (this.separator === '') return node
    const shown = shownName(name)
    let from = 0
    for (let level = 0; level < MAX_LEVELS; level++) {
      const at = shown.indexOf(this.separator, from)
      if (at < 0) break
      node = node.child(shown.slice(from, at), this.separator)
      from = at + this.separator.length
    }
    return node
  }
}

function newRoot(): Node {
  const root = new Node('', '', undefined)
  root.isOpen = true
  return root
}

function countBelow(folder: Node, isSelected: boolean): void {
  folder.selected = isSelected ? folder.count : 0
  for (const child of folder.folders.values()) countBelow(child, isSelected)
}

function asNode(folder: Folder): Node {
  if (folder instanceof Node) return folder
  throw new TypeError('a folder of another tree')
}
