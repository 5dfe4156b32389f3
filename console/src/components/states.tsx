/** The three states of every view besides its content: loading, failed, and empty. */

import IconAlertTriangle from 'icon:alert-triangle'
import IconInbox from 'icon:inbox'
import IconRefresh from 'icon:refresh'
import IconSearch from 'icon:search'
import { Alert, Button, Center, Loader, Skeleton, Stack, Text } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import { type ComponentType, type ReactNode, useState } from 'react'
import { ApiError } from '../api/client.js'

/** Shown during the first load. */
export function Loading({ what = 'Loading' }: { what?: string }) {
  return (
    <Center mih={160} role="status" aria-label={what}>
      <Loader size="sm" />
    </Center>
  )
}

/** Shown during the first load of a list. */
export function LoadingLines({ count = 5 }: { count?: number }) {
  return (
    <Stack gap="xs" p="sm" role="status" aria-label="Loading">
      {Array.from({ length: count }, (_, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines are all alike and stay where they are.
        <Skeleton key={line} h={22} />
      ))}
    </Stack>
  )
}

/** The error of a failed load, with the text of the server. */
export function ErrorState({ error, onRetry }: { error: Error; onRetry?: (() => void) | undefined }) {
  const status = error instanceof ApiError && error.status > 0 ? ` (${error.status})` : ''
  return (
    <Alert
      color="red"
      variant="light"
      icon={<IconAlertTriangle size={18} />}
      title={`Loading failed${status}`}
      role="alert"
    >
      <Stack gap="sm" align="flex-start">
        <Text size="sm" c="inherit">
          {error.message}
        </Text>
        {onRetry ? (
          <Button size="xs" variant="default" leftSection={<IconRefresh size={14} />} onClick={onRetry}>
            Try again
          </Button>
        ) : null}
      </Stack>
    </Alert>
  )
}

/** The error of a change, beside its button. */
export function Refusal({ error }: { error: Error | null }) {
  return error === null ? null : (
    <Alert color="red" role="alert">
      {error.message}
    </Alert>
  )
}

/** An empty view: what would be here, and what to do first. */
export interface EmptyStateProps {
  readonly title: string
  readonly children?: ReactNode
  readonly icon?: ComponentType<{ size?: number; stroke?: number; 'aria-hidden'?: boolean }>
  /** The first thing to do: a button or a link. */
  readonly action?: ReactNode
}

/** An empty view. */
export function EmptyState({ title, children, icon: Icon = IconInbox, action }: EmptyStateProps) {
  return (
    <Center py="xl" px="md">
      <Stack align="center" gap={6} maw={460} ta="center">
        <Icon size={34} stroke={1.3} aria-hidden />
        <Text fw={600}>{title}</Text>
        {children === undefined ? null : (
          <Text size="sm" c="dimmed" component="div" style={{ textWrap: 'balance' }}>
            {children}
          </Text>
        )}
        {action === undefined ? null : <div style={{ marginTop: 8 }}>{action}</div>}
      </Stack>
    </Center>
  )
}

/**
 * The error of a first load. It stays while the load is repeated. Otherwise, error and placeholder would alternate, and the
 * retry button would disappear under the pointer.
 */
export function useLoadError({ data, error }: { data: unknown; error: Error | null }): Error | null {
  const [held, hold] = useState<Error | null>(null)
  const shown = error ?? (data === undefined ? held : null)
  if (shown !== held) hold(shown)
  return shown
}

/** Whether the object does not exist, or no longer exists. */
export const isMissing = (error: Error | null): boolean => error instanceof ApiError && error.status === 404

/**
 * Shows data, its loading state, or its error. Old data stays visible while it is refreshed.
 * `missing`: shown instead of the error and of old data if the object does not exist, or no longer exists.
 */
export function Loaded<Data>({
  query,
  children,
  loading = <Loading />,
  missing,
}: {
  query: UseQueryResult<Data, Error>
  children: (data: Data) => ReactNode
  loading?: ReactNode
  missing?: ReactNode
}) {
  const error = useLoadError(query)
  if (missing !== undefined && isMissing(error)) return missing
  if (query.data !== undefined) return children(query.data)
  return error === null ? loading : <ErrorState error={error} onRetry={() => void query.refetch()} />
}

/** A list without an item that matches its filters. @param what the plural of the items: `runs`. */
export function NoMatches({ what }: { what: string }) {
  return (
    <EmptyState title={`No ${what} match the filters`} icon={IconSearch}>
      Change or clear the filters.
    </EmptyState>
  )
}
