import { useEffect } from 'react'

/** The last element outside of dialogs that had the focus. */
let outside: Element | null = null

document.addEventListener('focusin', ({ target }) => {
  if (target instanceof Element && target.closest('[role="dialog"]') === null) outside = target
})

/**
 * Returns the focus to the element that opened a dialog. The library does so only after an animation, and to the element
 * that had the focus when the dialog opened. So it fails if the dialog is unmounted at once, or if it followed another
 * dialog. If the element no longer exists, the page gets the focus.
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
