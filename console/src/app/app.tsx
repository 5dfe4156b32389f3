import { localStorageColorSchemeManager, MantineProvider } from '@mantine/core'
import { ModalsProvider } from '@mantine/modals'
import { Notifications } from '@mantine/notifications'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { queries, whenSignedOut } from '../api/session.js'
import { router } from './router.js'
import { cssVariablesResolver, theme } from './theme.js'

/** `public/color-scheme.js` reads the same key before the first paint. */
const colorSchemes = localStorageColorSchemeManager({ key: 'homeport-color-scheme' })

// An ended session leads to the sign-in page, and from there back to the same page. The document is loaded again, so
// that nothing of the old session stays in memory. On the sign-in page itself, the key was refused.
whenSignedOut(() => {
  const { pathname, href } = router.latestLocation
  if (pathname !== '/sign-in') window.location.assign(`/sign-in?next=${encodeURIComponent(href)}`)
})

/** The console: theme, cache and router. */
export function App() {
  return (
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariablesResolver}
      colorSchemeManager={colorSchemes}
      defaultColorScheme="auto"
    >
      <QueryClientProvider client={queries}>
        <ModalsProvider>
          <Notifications position="bottom-right" limit={4} />
          <RouterProvider router={router} />
        </ModalsProvider>
      </QueryClientProvider>
    </MantineProvider>
  )
}
