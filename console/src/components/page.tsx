import { Breadcrumbs, Group, Paper, type PaperProps, Stack, Text, Title } from '@mantine/core'
import type { LinkProps } from '@tanstack/react-router'
import { type ReactNode, useEffect } from 'react'
import { announce } from './announce.js'
import { TextLink } from './link.js'

/** Whether the page is the first one of the document. Browsers announce it themselves. */
let isFirst = true

/**
 * Sets the title of the page, and announces it to screen readers, which do not notice a new page without a load of the
 * document. If the focus was lost with the last page, the new page gets it.
 */
export function usePageTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Homeport`
    if (!isFirst) announce(title)
  }, [title])
  useEffect(() => {
    if (!isFirst && document.activeElement === document.body)
      document.getElementById('content')?.focus({ preventScroll: true })
    isFirst = false
  }, [])
}

/** A page above this one. */
export interface Crumb {
  readonly label: string
  readonly to: NonNullable<LinkProps['to']>
}

/** The frame of every page: title, purpose and actions. */
export function Page({
  title,
  about,
  badge,
  actions,
  crumbs = [],
  children,
}: {
  title: string
  /** One sentence for people who have not read the documentation. */
  about?: ReactNode
  badge?: ReactNode
  actions?: ReactNode
  crumbs?: readonly Crumb[]
  children: ReactNode
}) {
  usePageTitle(title)
  return (
    <Stack gap="lg">
      <Stack gap={6}>
        {crumbs.length === 0 ? null : (
          <Breadcrumbs
            component="nav"
            aria-label="Breadcrumbs"
            separatorMargin={6}
            styles={{ breadcrumb: { whiteSpace: 'normal', lineHeight: 'inherit' } }}
          >
            {crumbs.map(({ label, to }) => (
              <TextLink key={label} to={to}>
                {label}
              </TextLink>
            ))}
            <Text size="sm" c="dimmed">
              {title}
            </Text>
          </Breadcrumbs>
        )}
        <Group justify="space-between" align="center" gap="sm">
          <Group gap="sm" miw={0}>
            <Title order={1}>{title}</Title>
            {badge}
          </Group>
          {actions === undefined ? null : <Group gap="xs">{actions}</Group>}
        </Group>
        {about === undefined ? null : (
          <Text c="dimmed" size="sm" maw={760} style={{ textWrap: 'pretty' }}>
            {about}
          </Text>
        )}
      </Stack>
      {children}
    </Stack>
  )
}

/** A framed section of a page, with a title of its own. */
export function Panel({
  title,
  about,
  actions,
  children,
  flush = false,
  ...rest
}: {
  title?: string
  about?: ReactNode
  actions?: ReactNode
  children: ReactNode
  /** The content has no padding, for tables. */
  flush?: boolean
} & PaperProps) {
  return (
    <Paper withBorder bg="var(--hp-surface)" style={{ borderColor: 'var(--hp-line)', overflow: 'hidden' }} {...rest}>
      {title === undefined && actions === undefined ? null : (
        <Group justify="space-between" px="md" pt="sm" pb={flush ? 'sm' : 0} gap="xs" align="flex-start">
          <Stack gap={2} miw={0} flex="1 1 220px">
            {title === undefined ? null : <Title order={2}>{title}</Title>}
            {about === undefined ? null : (
              <Text size="sm" c="dimmed">
                {about}
              </Text>
            )}
          </Stack>
          {actions}
        </Group>
      )}
      {flush ? children : <div style={{ padding: 'var(--mantine-spacing-md)' }}>{children}</div>}
    </Paper>
  )
}
