/** Cached reads of a database\'s data. Cache keys start with `data` and the database, so one call refreshes all. */
import { keepPreviousData, type UseQueryResult, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import type { DataPlane } from '../../../api/data-plane.js'
import { CALM_MS } from '../../../api/hooks.js'
import { queries } from '../../../api/session.js'
import { type Reply, textOf } from '../../../lib/resp.js'
import type { Collection, ElementPage } from './collections.js'
import { type KeySearch, type ScanPage, scanKeys } from './keys.js'

/** Refreshes all data of a database on the page. */
export const refreshData = (plane: DataPlane): Promise<void> =>
  queries.invalidateQueries({ queryKey: ['data', plane.databaseId] })

/** The keys that a search found so far. */
export function useKeys(plane: DataPlane, search: KeySearch) {
  return useInfiniteQuery<ScanPage, Error, { pages: ScanPage[] }, readonly unknown[], string>({
    queryKey: ['data', plane.databaseId, 'keys', search],
    queryFn: ({ pageParam, signal }) => scanKeys(plane, search, pageParam, signal),
    initialPageParam: '0',
    getNextPageParam: ({ cursor }) => cursor,
    staleTime: Number.POSITIVE_INFINITY,
    // A row that both searches find stays where it is, so that a click on it counts.
    placeholderData: keepPreviousData,
  })
}

/** How many keys there are. */
export function useKeyCount(plane: DataPlane): number {
  const count = useQuery({
    queryKey: ['data', plane.databaseId, 'count'],
    queryFn: async () => Number(textOf(await plane.send('DBSIZE'))),
  })
  return count.data ?? 0
}

/** The metadata of a key. */
export interface KeyFacts {
  /** `none` if the key does not exist any more. */
  readonly type: string
  /** When it expires, Unix milliseconds; `undefined`: never. */
  readonly expiresAtMs: number | undefined
  /** Approximate size in memory, bytes. */
  readonly memoryBytes: number
}

/** The metadata of a key. */
export function useKeyFacts(plane: DataPlane, name: string): UseQueryResult<KeyFacts, Error> {
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
      const expiresAtMs = ttlMs < 0 ? undefined : Date.now() + ttlMs
      return { type: textOf(type), expiresAtMs, memoryBytes: Number(textOf(memory)) }
    },
  })
}

/** Longer strings are shown in part: a browser cannot show hundreds of megabytes. */
export const MOST_SHOWN_BYTES = 1_000_000

/** A string, or its beginning. */
export function useStringValue(plane: DataPlane, name: string) {
  return useQuery({
    queryKey: ['data', plane.databaseId, 'string', name],
    queryFn: async () => {
      const [length, value] = await plane.sendAll([
        ['STRLEN', name],
        ['GETRANGE', name, 0, MOST_SHOWN_BYTES - 1],
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

/** How many elements a value has. */
export function useElementCount(plane: DataPlane, name: string, type: string, collection: Collection) {
  return useQuery({
    queryKey: ['data', plane.databaseId, 'length', name, type],
    queryFn: async () => Number(textOf(await plane.send(...collection.count(name)))),
  })
}
