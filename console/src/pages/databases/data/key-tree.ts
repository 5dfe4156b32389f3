/**
 * The keys that a search has found: as folders by a separator, or as one list without one, with what is selected. It holds a
 * million keys: adding one costs the depth of its folders, and rows are computed for those on the screen.
 */
import { bytesOfKeyName, isBinaryName, type KeyName } from '../../../../../src/contract/databases/keys/key-name.js'
import { escaped } from '../../../lib/resp.js'

/** A name in which every character can be shown; other bytes are escaped. */
export const shownName = (name: KeyName): string => (PLAIN.test(name) ? name : escaped(bytesOfKeyName(name)))

const PLAIN = /^[^\u0000-\u001f\u007f"\\\ud800-\udfff]*$/

/** Deeper folders are not made: a name may consist of separators. */
const MOST_LEVELS = 16
/** Longer lists stay in the order in which their keys were found: sorting them would hold the page up. */
const MOST_SORTED = 10_000
/** Numbers in names count as numbers: 9 comes before 10. */
const { compare } = new Intl.Collator('en', { numeric: true })

/** The keys that begin alike, up to a separator. */
export interface Folder {
  /** What its keys begin with, separator included; empty for the root. */
  readonly path: string
  readonly parent: Folder | undefined
  /** How many keys are in it and below. */
  readonly count: number
}

/** Whether all, some or none of the keys of a folder are selected. */
export type Selected = 'all' | 'some' | 'none'

/** A row of the list; `level` is 1 for the outermost. */
export type KeyRow =
  | { readonly kind: 'folder'; readonly folder: Folder; readonly label: string; readonly level: number }
  | {
      readonly kind: 'key'
      readonly name: KeyName
      readonly label: string
      readonly level: number
      readonly folder: Folder
    }

/** The rows that are visible when all of them are on the screen. */
export interface KeyRows {
  readonly count: number
  /** @throws RangeError for an index that is no row */
  at(index: number): KeyRow
  /** The index of an open or closed folder; `-1` if it has no row. */
  indexOf(folder: Folder): number
}

class Node implements Folder {
  readonly path: string
  readonly segment: string
  readonly parent: Node | undefined
  readonly folders = new Map<string, Node>()
  names: KeyName[] = []
  count = 0
  selected = 0
  isOpen = false
  #sorted: readonly Node[] | undefined
  #areNamesSorted = true

  constructor(path: string, segment: string, parent: Node | undefined) {
    this.path = path
    this.segment = segment
    this.parent = parent
  }

  child(segment: string, separator: string): Node {
    const known = this.folders.get(segment)
    if (known) return known
    const made = new Node(this.path + segment + separator, segment, this)
    this.folders.set(segment, made)
    this.#sorted = undefined
    return made
  }

  drop(child: Node): void {
    this.folders.delete(child.segment)
    this.#sorted = undefined
  }

  push(name: KeyName): void {
    this.names.push(name)
    this.#areNamesSorted = false
  }

  sortedFolders(): readonly Node[] {
    this.#sorted ??= inOrder([...this.folders.values()], (one, other) => compare(one.segment, other.segment))
    return this.#sorted
  }

  sortedNames(): readonly KeyName[] {
    if (!this.#areNamesSorted) inOrder(this.names, compare)
    this.#areNamesSorted = true
    return this.names
  }
}

function inOrder<Item>(items: Item[], by: (one: Item, other: Item) => number): Item[] {
  return items.length > MOST_SORTED ? items : items.sort(by)
}

/** The keys, their folders and the selection. */
export class KeyTree {
  /** What folders end with; empty: there are none. */
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

  /** All names, in the order in which they were added; names that are added meanwhile come last. */
  get names(): Iterable<KeyName> {
    return this.#known
  }

  /** Adds names; those that are there already change nothing: SCAN may find a key twice. */
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

  /** Removes names; folders without keys go with them. */
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

  /** How much of a folder is selected; without one, of everything. */
  selectedOf(folder: Folder = this.#root): Selected {
    const { selected, count } = asNode(folder)
    if (selected === 0) return 'none'
    return selected === count ? 'all' : 'some'
  }

  /** Selects a row, or takes it from the selection: a folder with all keys below. */
  select(row: KeyRow, isSelected: boolean): void {
    if (row.kind === 'key') this.#selectKey(row.name, asNode(row.folder), isSelected)
    else this.#selectBelow(asNode(row.folder), isSelected)
  }

  /** Selects every key, or none. */
  selectAll(isSelected: boolean): void {
    this.#selected = isSelected ? new Set(this.#known) : new Set()
    countBelow(this.#root, isSelected)
  }

  /** Selects keys of the tree, or takes them from the selection. */
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
    for (let level = 0; level < MOST_LEVELS; level++) {
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

/** Consecutive rows: one folder, or keys of one folder. */
interface Segment {
  /** The index of its first row. */
  readonly start: number
  readonly level: number
  readonly node: Node
  /** Absent: the row of the folder itself. */
  readonly names?: readonly KeyName[]
}

class Segments implements KeyRows {
  readonly #segments: Segment[] = []
  count = 0

  constructor(root: Node, order: 'sorted' | 'found') {
    this.#addContent(root, 1, order)
  }

  at(index: number): KeyRow {
    const segment = this.#segmentAt(index)
    if (!segment || index >= this.count) throw new RangeError(`no row ${index} of ${this.count}`)
    const { node, level, names, start } = segment
    const name = names?.[index - start]
    if (name === undefined) {
      const label = node.path.slice(node.parent?.path.length ?? 0)
      return { kind: 'folder', folder: node, label, level }
    }
    return { kind: 'key', name, label: shownName(name).slice(node.path.length), level, folder: node }
  }

  indexOf(folder: Folder): number {
    return this.#segments.find(({ node, names }) => node === folder && names === undefined)?.start ?? -1
  }

  #segmentAt(index: number): Segment | undefined {
    let low = 0
    let high = this.#segments.length - 1
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if ((this.#segments[middle]?.start ?? 0) <= index) low = middle
      else high = middle - 1
    }
    return this.#segments[low]
  }

  #addContent(node: Node, level: number, order: 'sorted' | 'found'): void {
    for (const child of node.sortedFolders()) {
      this.#segments.push({ start: this.count, level, node: child })
      this.count++
      if (child.isOpen) this.#addContent(child, level + 1, order)
    }
    const names = order === 'sorted' ? node.sortedNames() : node.names
    if (names.length > 0) this.#segments.push({ start: this.count, level, node, names })
    this.count += names.length
  }
}

/** Whether a key can be opened: its name can be sent as text. */
export const canOpen = (name: KeyName): boolean => !isBinaryName(name)
