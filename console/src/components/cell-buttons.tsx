import { Button, UnstyledButton } from '@mantine/core'
import type { ReactNode } from 'react'

/** What a row is, as the button that opens it: a click on the row alone would be out of reach for the keyboard. */
export function CellButton({ onClick, title, children }: { onClick: () => void; title?: string; children: ReactNode }) {
  return (
    <UnstyledButton
      fz="sm"
      c="var(--mantine-color-anchor)"
      className="truncate"
      maw="100%"
      onClick={onClick}
      {...(title !== undefined && { title })}
    >
      {children}
    </UnstyledButton>
  )
}

/** Takes a row away, after a question. `of` tells people who do not see the row which one. */
export function CellDanger({ verb, of, onClick }: { verb: string; of: string; onClick: () => void }) {
  return (
    <Button
      size="compact-xs"
      variant="subtle"
      color="red.9"
      c="var(--mantine-color-error)"
      onClick={onClick}
      aria-label={`${verb} ${of}`}
    >
      {verb}
    </Button>
  )
}
