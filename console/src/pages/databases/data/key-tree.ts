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
const MOST_SORTED = 20_000

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
  readonly parent: Node | undefined
  readonly folders = new Map<string, Node>()
  names: KeyName[] = []
  count = 0
  selected = 0
  isOpen = false
  #sorted: readonly Node[] | undefined
  #areNamesSorted = true

  constructor(path: string, parent: Node | undefined) {
    this.path = path
    this.parent = parent
  }

  child(segment: string, separator: string): Node {
    const known = this.folders.get(segment)
    if (known) return known
    const made = new Node(this.path + segment + separator, this)
    this.folders.set(segment, made)
    this.#sorted = undefined
    return made
  }

  drop(child: Node): void {
    for (const [segment, node] of this.folders) if (node === child) this.folders.delete(segment)
    this.#sorted = undefined
  }

  push(name: KeyName): void {
    this.names.push(name)
    this.#areNamesSorted = false
  }

  sortedFolders(): readonly Node[] {
    this.#sorted ??= inOrder([...this.folders.values()], (one, other) => (one.path < other.path ? -1 : 1))
    return this.#sorted
  }

  sortedNames(): readonly KeyName[] {
    if (!this.#areNamesSorted) inOrder(this.names, (one, other) => (one < other ? -1 : 1))
    this.#areNamesSorted = true
    return this.names
  }
}

function inOrder<Item>(items: Item[], compare: (one: Item, other: Item) => number): Item[] {
  return items.length > MOST_SORTED ? items : items.sort(compare)
}

/** The keys, their folders and the selection. */
export class KeyTree {
  readonly #separator: string
  readonly #root = new Node('', undefined)
  readonly #known = new Set<KeyName>()
  readonly #selected = new Set<KeyName>()
  #rows: Segments | undefined

  /** An empty separator makes no folders. */
  constructor(separator: string) {
    this.#separator = separator
    this.#root.isOpen = true
  }

  get count(): number {
    return this.#known.size
  }

  /** The selected names, in the order of their selection. */
  get selected(): ReadonlySet<KeyName> {
    return this.#selected
  }

  /** All names, in the order in which they were added. */
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
    const folders = new Set<Node>()
    for (const name of names) {
      if (!this.#known.delete(name)) continue
      gone.add(name)
      const folder = this.#folderOf(name)
      folders.add(folder)
      const wasSelected = this.#selected.delete(name)
      for (let node: Node | undefined = folder; node; node = node.parent) {
        node.count--
        if (wasSelected) node.selected--
      }
    }
    for (const folder of folders) {
      folder.names = folder.names.filter((name) => !gone.has(name))
      for (let node: Node | undefined = folder; node?.parent && node.count === 0; node = node.parent)
        node.parent.drop(node)
    }
    this.#rows = undefined
  }

  /** The rows, with the keys of open folders. */
  rows(): KeyRows {
    this.#rows ??= new Segments(this.#root, this.#separator === '' ? 'found' : 'sorted')
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
    this.#selectBelow(this.#root, isSelected)
  }

  /** Selects keys of the tree. */
  selectNames(names: Iterable<KeyName>): void {
    for (const name of names) if (this.#known.has(name)) this.#selectKey(name, this.#folderOf(name), true)
  }

  #selectKey(name: KeyName, folder: Node, isSelected: boolean): void {
    if (this.#selected.has(name) === isSelected) return
    if (isSelected) this.#selected.add(name)
    else this.#selected.delete(name)
    for (let node: Node | undefined = folder; node; node = node.parent) node.selected += isSelected ? 1 : -1
  }

  #selectBelow(folder: Node, isSelected: boolean): void {
    for (const name of folder.names) this.#selectKey(name, folder, isSelected)
    for (const child of folder.folders.values()) this.#selectBelow(child, isSelected)
  }

  #folderOf(name: KeyName): Node {
    let node = this.#root
    if (this.#separator === '') return node
    const segments = shownName(name).split(this.#separator)
    for (const segment of segments.slice(0, Math.min(segments.length - 1, MOST_LEVELS)))
      node = node.child(segment, this.#separator)
    return node
  }
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
