/** The session of the signed-in user and the settings of this server. Both stay the same until the user signs out. */
import { MutationCache, QueryCache, QueryClient, queryOptions, useSuspenseQuery } from '@tanstack/react-query'
import { type ConsoleSettings, getConsoleSettings } from '../../../src/contract/console/console.js'
import { type ConsoleSession, getConsoleSession } from '../../../src/contract/console/session.js'
import { api, isSignedOut, isWithoutAnswer } from './client.js'
import { keyOf } from './hooks.js'

const onSignedOut = new Set<() => void>()

/** Calls `callback` when the session has ended. @returns a function that unsubscribes. */
export function whenSignedOut(callback: () => void): () => void {
  onSignedOut.add(callback)
  return () => void onSignedOut.delete(callback)
}

function noticeEnd(error: Error): void {
  if (isSignedOut(error)) for (const callback of onSignedOut) callback()
}

/** The cache of all reads. Error responses are not retried: they would fail again. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      // The browser's report about internet access says nothing about the server, which may be this computer or in a network
      // without internet access.
      networkMode: 'always',
      retry: (failures, error) => failures < 2 && isWithoutAnswer(error),
    },
    mutations: { networkMode: 'always' },
  },
  queryCache: new QueryCache({ onError: noticeEnd }),
  mutationCache: new MutationCache({ onError: noticeEnd }),
})

/** Who is signed in; `null` when nobody is. */
export const sessionQuery = queryOptions<ConsoleSession | null>({
  queryKey: keyOf(getConsoleSession, {}),
  queryFn: ({ signal }) => api(getConsoleSession, {}, signal),
  staleTime: Number.POSITIVE_INFINITY,
})

/** What this server offers. */
export const settingsQuery = queryOptions<ConsoleSettings>({
  queryKey: keyOf(getConsoleSettings, {}),
  queryFn: ({ signal }) => api(getConsoleSettings, {}, signal),
  staleTime: Number.POSITIVE_INFINITY,
})

/** Who is signed in. For pages inside the shell, which only signed-in users see. */
export function useSession(): ConsoleSession {
  const { data } = useSuspenseQuery(sessionQuery)
  if (data === null) throw new Error('no session: this page needs a signed-in user')
  return data
}

/** Whether changes are allowed; with a read-only key the pages offer none. */
export function useCanWrite(): boolean {
  return useSession().access === 'write'
}

/** Whether the user may change shared items such as tokens. In a team, only its owner and admins may. */
export function useManages(): boolean {
  const { access, role } = useSession()
  return access === 'write' && (role === undefined || role === 'owner' || role === 'admin')
}

/** What this server offers. For pages inside the shell, which renders once the settings are loaded. */
export function useSettings(): ConsoleSettings {
  return useSuspenseQuery(settingsQuery).data
}
