/** The folders of a tree of keys, and the rows that they make. */
import type { KeyName } from '../../../../../src/contract/databases/keys/key-name.js'
import { shownName } from './shown-name.js'

/** Longer lists keep the order in which their keys were found, because sorting them would block the page. */
const MAX_SORTED = 10_000
/** Compares numbers in names as numbers: 9 comes before 10. */
const { compare } = new Intl.Collator('en', { numeric: true })

/** The keys with a common prefix that ends with a separator. */
export interface Folder {
  /** The prefix of its keys, separator included; empty for the root. */
  readonly path: string
  readonly parent: Folder | undefined
  /** Number of keys in it and in its subfolders. */
  readonly count: number
}

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

/** The rows of the list: all folders and keys that are not inside a closed folder. */
export interface KeyRows {
  readonly count: number
  /** @throws RangeError for an index that is no row */
  at(index: number): KeyRow
  /** The index of an open or closed folder; `-1` if it has no row. */
  indexOf(folder: Folder): number
}

/** A folder with its content; only the tree changes it. */
export class Node implements Folder {
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
  return items.length > MAX_SORTED ? items : items.sort(by)
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

/** The rows of a tree at one moment, as runs of keys between folders. */
export class Segments implements KeyRows {
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
