/** Cached reads of a database's data. Cache keys start with `data` and the database, so one call refreshes all. */
import { keepPreviousData, type UseQueryResult, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState, useSyncExternalStore } from 'react'
import type { KeyName } from '../../../../../src/contract/databases/keys/key-name.js'
import type { KeyFacts } from '../../../../../src/contract/databases/keys/key-store.js'
import type { DataPlane } from '../../../api/data-plane.js'
import { CALM_MS } from '../../../api/hooks.js'
import { queries } from '../../../api/session.js'
import { serverMs } from '../../../lib/clock.js'
import { type Reply, textOf } from '../../../lib/resp.js'
import type { Collection, ElementPage } from './collections.js'
import { KeyList } from './key-list.js'
import { type KeySearch, scanKeys } from './keys.js'

/** Refreshes all data of a database on the page. */
export const refreshData = (plane: DataPlane): Promise<void> =>
  queries.invalidateQueries({ queryKey: ['data', plane.databaseId] })

/** A search for keys with its results. It starts at once, and restarts when the search or `generation` changes. */
export function useKeyList(plane: DataPlane, search: KeySearch, separator: string, generation: number) {
  const [list, setList] = useState<KeyList | undefined>()
  const latestSeparator = useRef(separator)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another generation is another search.
  useEffect(() => {
    const fresh = new KeyList((cursor, count) => scanKeys(plane, search, cursor, count), latestSeparator.current)
    let isLeft = false
    // The old results stay until there are new ones, so that rows do not disappear under a click.
    void fresh.more().then(() => {
      if (!isLeft) setList(fresh)
    })
    return () => {
      isLeft = true
      fresh.stop()
    }
  }, [plane, search, generation])
  useEffect(() => {
    latestSeparator.current = separator
    void list?.regroup(separator)
  }, [list, separator])
  const version = useSyncExternalStore(list?.subscribe ?? NOBODY, list?.version ?? NO_VERSION)
  return { list, version }
}

const NOBODY = () => () => undefined
const NO_VERSION = () => 0

const NO_FACTS: ReadonlyMap<KeyName, KeyFacts> = new Map()

/** Type, expiry and size of keys. The facts of the previous names stay until those of the new names have arrived. */
export function useFacts(plane: DataPlane, names: readonly KeyName[]): ReadonlyMap<KeyName, KeyFacts> {
  const facts = useQuery({
    queryKey: ['data', plane.databaseId, 'rows', names],
    queryFn: async () => {
      const read = await plane.keys.facts(names)
      return new Map(names.map((name, index) => [name, read[index] ?? GONE]))
    },
    enabled: names.length > 0,
    placeholderData: keepPreviousData,
    gcTime: 10_000,
  })
  return facts.data ?? NO_FACTS
}

const GONE: KeyFacts = { type: 'none', ttlMs: undefined, bytes: undefined }

/** Number of keys in the database. */
export function useKeyCount(plane: DataPlane): number {
  const count = useQuery({
    queryKey: ['data', plane.databaseId, 'count'],
    queryFn: async () => Number(textOf(await plane.send('DBSIZE'))),
  })
  return count.data ?? 0
}

/** The metadata of the open key. */
export interface OpenKeyFacts {
  /** `none` if the key does not exist any more. */
  readonly type: string
  /** When it expires, Unix milliseconds; `undefined`: never. */
  readonly expiresAtMs: number | undefined
  /** Approximate size in memory, bytes. */
  readonly memoryBytes: number
}

/** The metadata of a key. */
export function useKeyFacts(plane: DataPlane, name: string): UseQueryResult<OpenKeyFacts, Error> {
  return useQuery({
    queryKey: ['data', plane.databaseId, 'facts', name],
    refetchInterval: CALM_MS,
    queryFn: async () => {
      const [type, ttl, memory] = await plane.sendAll([
        ['TYPE', name],
        ['PTTL', name],
        ['MEMORY', 'USAGE', name],
      ])
      const ttlMs = Number(textOf(ttl))
      const expiresAtMs = ttlMs < 0 ? undefined : serverMs() + ttlMs
      return { type: textOf(type), expiresAtMs, memoryBytes: Number(textOf(memory)) }
    },
  })
}

/** Longer strings are shown in part: a browser cannot show hundreds of megabytes. */
export const MAX_SHOWN_BYTES = 1_000_000

/** A string, or its beginning. */
export function useStringValue(plane: DataPlane, name: string) {
  return useQuery({
    queryKey: ['data', plane.databaseId, 'string', name],
    queryFn: async () => {
      const [length, value] = await plane.sendAll([
        ['STRLEN', name],
        ['GETRANGE', name, 0, MAX_SHOWN_BYTES - 1],
      ])
      return { length: Number(textOf(length)), bytes: bytesOf(value) }
    },
  })
}

function bytesOf(reply: Reply | undefined): Uint8Array<ArrayBuffer> {
  if (reply?.kind === 'bulk') return reply.bytes
  throw new Error(reply?.kind === 'error' ? reply.text : 'the value is not a string any more')
}

/** The elements of a value, page by page. */
export function useElements(plane: DataPlane, name: string, type: string, collection: Collection) {
  return useInfiniteQuery<ElementPage, Error, { pages: ElementPage[] }, readonly unknown[], string>({
    queryKey: ['data', plane.databaseId, 'elements', name, type],
    queryFn: async ({ pageParam }) => collection.read(await plane.send(...collection.page(name, pageParam)), pageParam),
    initialPageParam: '',
    getNextPageParam: ({ next }) => next,
  })
}

/** Number of elements of a value. */
export function useElementCount(plane: DataPlane, name: string, type: string, collection: Collection) {
  return useQuery({
    queryKey: ['data', plane.databaseId, 'length', name, type],
    queryFn: async () => Number(textOf(await plane.send(...collection.count(name)))),
  })
}
