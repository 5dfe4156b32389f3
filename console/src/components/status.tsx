import { Group, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import classes from './status.module.css'

/** The five tones of a state. */
export type Tone = 'ok' | 'busy' | 'warn' | 'bad' | 'idle'

/** A state as text with a coloured dot: many cannot tell the colours apart. */
export function Status({ tone, children }: { tone: Tone; children: ReactNode }) {
  return (
    <Group gap={7} wrap="nowrap" component="span" className={classes.status ?? ''}>
      <span className={classes.dot} data-tone={tone} aria-hidden />
      <Text component="span" size="sm" className="truncate">
        {children}
      </Text>
    </Group>
  )
}
