import './styles.js'
import { ModalsProvider } from '@mantine/modals'
import { Notifications } from '@mantine/notifications'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import type { ConsoleSession } from '../../../src/contract/console/session.js'
import { queries, sessionQuery } from '../api/session.js'
import { router } from './router.js'
import { SessionEnd } from './session-end.js'

/** The console of a signed-in user: cache and router. */
export function Console({ session }: { session: ConsoleSession }) {
  // The first page reads the session from the cache.
  if (queries.getQueryData(sessionQuery.queryKey) === undefined) queries.setQueryData(sessionQuery.queryKey, session)
  return (
    <QueryClientProvider client={queries}>
      <ModalsProvider>
        <Notifications position="bottom-right" limit={4} />
        <RouterProvider router={router} />
        <SessionEnd session={session} />
      </ModalsProvider>
    </QueryClientProvider>
  )
}
