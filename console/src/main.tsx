import './app/first-styles.js'
import './app/global.css'
import { MantineProvider } from '@mantine/core'
import { type ReactNode, StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { type ConsoleSession, getConsoleSession } from '../../src/contract/console/session.js'
import { api } from './api/client.js'
import { announceSignIn, whenAnotherSignsIn } from './api/other-tabs.js'
import { loadWithRetries } from './app/lazy-page.js'
import { colorSchemes, cssVariablesResolver, theme } from './app/theme.js'
import { ErrorState } from './components/states.js'
import { nextOf, signInPath } from './lib/next.js'

/**
 * The entry point of the console: reads the session, and loads either the sign-in page or the console. It is small, and so
 * is the sign-in page: neither contains the code of the console.
 */

const element = document.getElementById('root')
const root = element === null ? undefined : createRoot(element)

function show(page: ReactNode): void {
  root?.render(
    <StrictMode>
      <MantineProvider
        theme={theme}
        cssVariablesResolver={cssVariablesResolver}
        colorSchemeManager={colorSchemes}
        defaultColorScheme="auto"
      >
        {page}
      </MantineProvider>
    </StrictMode>,
  )
}

/** Opens the first page. After a failure, the user can call it again. */
async function open(): Promise<void> {
  try {
    const session = await api(getConsoleSession, {})
    await (session === null ? openSignIn() : openConsole(session))
  } catch (error) {
    const known = error instanceof Error ? error : new Error(String(error))
    show(<ErrorState error={known} onRetry={() => void open()} />)
  }
}

async function openSignIn(): Promise<void> {
  const { pathname, search, href, origin } = window.location
  const next = pathname === '/sign-in' ? nextOf(search) : href.slice(origin.length)
  window.history.replaceState(null, '', signInPath(next))
  const { SignInPage } = await loadWithRetries(() => import('./pages/sign-in/sign-in.js'))
  const onSignedIn = (session: ConsoleSession) => {
    announceSignIn(session)
    return openConsole(session)
  }
  show(<SignInPage onSignedIn={onSignedIn} />)
}

async function openConsole(session: ConsoleSession): Promise<void> {
  const { pathname, search } = window.location
  if (pathname === '/sign-in') window.history.replaceState(null, '', nextOf(search))
  whenAnotherSignsIn(session, () => window.location.reload())
  const { Console } = await loadWithRetries(() => import('./app/console.js'))
  show(<Console session={session} />)
}

void open()
