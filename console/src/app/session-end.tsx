import { CatchBoundary } from '@tanstack/react-router'
import { Suspense, useEffect, useState } from 'react'
import type { ConsoleSession } from '../../../src/contract/console/session.js'
import { announceSignIn, isSameUser } from '../api/other-tabs.js'
import { queries, sessionQuery, whenSignedOut } from '../api/session.js'
import { signInPath } from '../lib/next.js'
import { lazyPage } from './lazy-page.js'

const SignInAgain = lazyPage(() => import('../pages/sign-in/sign-in-again.js'), 'SignInAgain')

/** Path of the page in which the user typed last. */
let typedInto: string | undefined
const noteTyping = (): void => {
  typedInto = window.location.pathname
}
document.addEventListener('input', noteTyping, { capture: true })

let isCovered = false
// While the sign-in dialog covers the page, Escape must not close dialogs below it. So this listener runs before theirs.
window.addEventListener('keydown', (event) => isCovered && event.key === 'Escape' && event.stopImmediatePropagation(), {
  capture: true,
})

const pathOfPage = (): string => window.location.href.slice(window.location.origin.length)

/** Opens the sign-in page by a load, so that no data of the old session stays in memory. It leads back to this page. */
const leave = (): void => window.location.assign(signInPath(pathOfPage()))

/**
 * Handles the end of the session. Opens the sign-in page, unless the user has typed into this page, which would be lost.
 * In that case, a dialog covers the page and asks for the key.
 */
export function SessionEnd({ session }: { session: ConsoleSession }) {
  /** Whether the dialog is open; `undefined` until it opens for the first time. */
  const [isAsking, setAsking] = useState<boolean | undefined>()
  useEffect(
    () =>
      whenSignedOut(() => {
        if (typedInto === window.location.pathname) setAsking(true)
        else leave()
      }),
    [],
  )
  useEffect(() => {
    isCovered = isAsking === true
  }, [isAsking])
  const resumeSession = (again: ConsoleSession) => {
    announceSignIn(again)
    if (!isSameUser(again, session)) return window.location.reload()
    setAsking(false)
    queries.setQueryData(sessionQuery.queryKey, again)
    void queries.invalidateQueries()
  }
  if (isAsking === undefined) return null
  return (
    <CatchBoundary getResetKey={() => 0} errorComponent={() => null} onCatch={leave}>
      <Suspense fallback={null}>
        <SignInAgain
          isOpen={isAsking}
          email={session.email}
          leavesTo={signInPath(pathOfPage())}
          onSignedIn={resumeSession}
        />
      </Suspense>
    </CatchBoundary>
  )
}
