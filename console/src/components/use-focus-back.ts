import { useEffect } from 'react'

/** What had the focus last, dialogs aside. */
let outside: Element | null = null

document.addEventListener('focusin', ({ target }) => {
  if (target instanceof Element && target.closest('[role="dialog"]') === null) outside = target
})

/**
 * Gives the focus back to what opened a dialog, also where the dialog is removed as a whole, and where it followed another one:
 * the library returns the focus only after an animation, to what had it when the dialog opened. What was deleted leaves the
 * focus to the page.
 */
export function useFocusBack(isOpen: boolean): void {
  useEffect(() => {
    if (!isOpen) return
    return () => void setTimeout(giveBack)
  }, [isOpen])
}

function giveBack(): void {
  if (document.activeElement !== document.body) return
  const next = outside?.isConnected ? outside : document.getElementById('content')
  if (next instanceof HTMLElement) next.focus({ preventScroll: true })
}
